"""Find the fewest pixels that fool an image classifier, and see why they do.

Names are brought in when first used, so that ``import pinprick`` does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pinprick.attacks import ATTACKS, Attack, Card, find_attack
    from pinprick.attacks.build import build, describe
    from pinprick.bounds.certify import Certificate, certify
    from pinprick.bounds.exact import prove
    from pinprick.bounds.proof import Proof
    from pinprick.bounds.smoothed import SmoothedCertificate, certify_smoothed
    from pinprick.checks import check_model, check_result
    from pinprick.contract.check_attack import check_attack
    from pinprick.data import load_data
    from pinprick.data.dataset import Dataset
    from pinprick.data.select import load_subset
    from pinprick.errors import (
        BadInput,
        MissingExtra,
        NoAnswer,
        OverBudget,
        PinprickError,
        UnknownName,
    )
    from pinprick.explain.class_scores import rivals
    from pinprick.explain.explain_result import explain_result
    from pinprick.explain.maps.class_maps import gradcam, layercam
    from pinprick.explain.maps.guided import guided_gradcam, guided_gradients
    from pinprick.explain.maps.integrated import integrated_gradients
    from pinprick.explain.maps.layers import find_layer
    from pinprick.explain.noise.changes import rebuild
    from pinprick.explain.noise.explain_noise import explain_noise
    from pinprick.explain.noise.explanation import Explanation
    from pinprick.explain.noise.settings import NoiseSettings
    from pinprick.goal import Goal, least_likely
    from pinprick.jobs.draw import draw_attack, draw_comparison, draw_effects, draw_explanation
    from pinprick.model import Classifier, Model
    from pinprick.parts.units import Units
    from pinprick.polishing import polish
    from pinprick.problem import Problem
    from pinprick.random import Streams
    from pinprick.report.curves_figure import plot_curves
    from pinprick.report.summary import summarise
    from pinprick.result import AttackResult, Failure, join
    from pinprick.result_file import load_result, save_result
    from pinprick.run import attack_batches, run_attack
    from pinprick.scores import score_model
    from pinprick.settings import setting
    from pinprick.threads import fast_threads
    from pinprick.worst_case import best_of
    from pinprick.zoo import load_model
    from pinprick.zoo.card import ModelCard
    from pinprick.zoo.saved_folder import save_model

__version__ = "0.1.0"

_HOME = {  # the module of each public name; the names are also in the lists above and below
    "ATTACKS": "attacks",
    "Attack": "attacks",
    "AttackResult": "result",
    "BadInput": "errors",
    "Card": "attacks",
    "Certificate": "bounds.certify",
    "Classifier": "model",
    "Dataset": "data.dataset",
    "Explanation": "explain.noise.explanation",
    "Failure": "result",
    "Goal": "goal",
    "MissingExtra": "errors",
    "Model": "model",
    "ModelCard": "zoo.card",
    "NoAnswer": "errors",
    "NoiseSettings": "explain.noise.settings",
    "OverBudget": "errors",
    "PinprickError": "errors",
    "Problem": "problem",
    "Proof": "bounds.proof",
    "SmoothedCertificate": "bounds.smoothed",
    "Streams": "random",
    "Units": "parts.units",
    "UnknownName": "errors",
    "attack_batches": "run",
    "best_of": "worst_case",
    "build": "attacks.build",
    "certify": "bounds.certify",
    "certify_smoothed": "bounds.smoothed",
    "check_attack": "contract.check_attack",
    "check_model": "checks",
    "check_result": "checks",
    "describe": "attacks.build",
    "draw_attack": "jobs.draw",
    "draw_comparison": "jobs.draw",
    "draw_effects": "jobs.draw",
    "draw_explanation": "jobs.draw",
    "explain_noise": "explain.noise.explain_noise",
    "explain_result": "explain.explain_result",
    "fast_threads": "threads",
    "find_attack": "attacks",
    "find_layer": "explain.maps.layers",
    "gradcam": "explain.maps.class_maps",
    "guided_gradcam": "explain.maps.guided",
    "guided_gradients": "explain.maps.guided",
    "integrated_gradients": "explain.maps.integrated",
    "join": "result",
    "layercam": "explain.maps.class_maps",
    "least_likely": "goal",
    "load_data": "data",
    "load_model": "zoo",
    "load_result": "result_file",
    "load_subset": "data.select",
    "plot_curves": "report.curves_figure",
    "polish": "polishing",
    "prove": "bounds.exact",
    "rebuild": "explain.noise.changes",
    "rivals": "explain.class_scores",
    "run_attack": "run",
    "save_model": "zoo.saved_folder",
    "save_result": "result_file",
    "score_model": "scores",
    "setting": "settings",
    "summarise": "report.summary",
}

__all__ = [
    "ATTACKS",
    "Attack",
    "AttackResult",
    "BadInput",
    "Card",
    "Certificate",
    "Classifier",
    "Dataset",
    "Explanation",
    "Failure",
    "Goal",
    "MissingExtra",
    "Model",
    "ModelCard",
    "NoAnswer",
    "NoiseSettings",
    "OverBudget",
    "PinprickError",
    "Problem",
    "Proof",
    "SmoothedCertificate",
    "Streams",
    "Units",
    "UnknownName",
    "attack_batches",
    "best_of",
    "build",
    "certify",
    "certify_smoothed",
    "check_attack",
    "check_model",
    "check_result",
    "describe",
    "draw_attack",
    "draw_comparison",
    "draw_effects",
    "draw_explanation",
    "explain_noise",
    "explain_result",
    "fast_threads",
    "find_attack",
    "find_layer",
    "gradcam",
    "guided_gradcam",
    "guided_gradients",
    "integrated_gradients",
    "join",
    "layercam",
    "least_likely",
    "load_data",
    "load_model",
    "load_result",
    "load_subset",
    "plot_curves",
    "polish",
    "prove",
    "rebuild",
    "rivals",
    "run_attack",
    "save_model",
    "save_result",
    "score_model",
    "setting",
    "summarise",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pinprick' has no attribute {name!r}")
    return getattr(import_module(f"pinprick.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
