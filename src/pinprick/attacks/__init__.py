"""All attacks, by name. To add one: write its file, then add its line here."""

from pinprick.attacks.auto import Auto
from pinprick.attacks.brendel_bethge import BrendelBethge
from pinprick.attacks.brusle import BruSLe
from pinprick.attacks.card import Attack, Card
from pinprick.attacks.corner_search import CornerSearch
from pinprick.attacks.cw_l0 import CWL0
from pinprick.attacks.cw_l2 import CWL2
from pinprick.attacks.deepfool import DeepFool
from pinprick.attacks.difgsm import DIFGSM
from pinprick.attacks.egs_tssa import EGSTSSA
from pinprick.attacks.fgsm import FGSM
from pinprick.attacks.fmn import FMN
from pinprick.attacks.greedy import Greedy
from pinprick.attacks.greedyfool import GreedyFool
from pinprick.attacks.gse import GSE
from pinprick.attacks.homotopy import Homotopy
from pinprick.attacks.hopskipjump import HopSkipJump
from pinprick.attacks.ifgsm import IFGSM
from pinprick.attacks.jsma import JSMA
from pinprick.attacks.lbfgs import LBFGS
from pinprick.attacks.mifgsm import MIFGSM
from pinprick.attacks.onepixel import OnePixel
from pinprick.attacks.own_class import load_class
from pinprick.attacks.pdpgd import PDPGD
from pinprick.attacks.pgd import PGD
from pinprick.attacks.pgd0 import PGD0
from pinprick.attacks.pinprick import Pinprick
from pinprick.attacks.pixle import Pixle
from pinprick.attacks.pointwise import Pointwise
from pinprick.attacks.rfgsm import RFGSM
from pinprick.attacks.sa_moo import SAMOO
from pinprick.attacks.sapf import SAPF
from pinprick.attacks.sigma_zero import SigmaZero
from pinprick.attacks.sparse_evo import SparseEvo
from pinprick.attacks.sparse_pgd import SparsePGD
from pinprick.attacks.sparse_rs import SparseRS
from pinprick.attacks.sparsefool import SparseFool
from pinprick.attacks.strattack import StrAttack
from pinprick.attacks.tifgsm import TIFGSM
from pinprick.attacks.vfga import VFGA
from pinprick.attacks.wifgsm import WIFGSM
from pinprick.attacks.wifgsm_printed import WIFGSMPrinted
from pinprick.errors import UnknownName

ATTACKS: dict[str, type[Attack]] = {
    cls.card.name: cls
    for cls in (
        # l-infinity
        FGSM,
        RFGSM,
        IFGSM,
        PGD,
        MIFGSM,
        DIFGSM,
        TIFGSM,
        # l2
        LBFGS,
        DeepFool,
        CWL2,
        # l0, the worst case over several
        Auto,
        # l0, white-box
        Greedy,
        SparseFool,
        GreedyFool,
        Homotopy,
        SigmaZero,
        FMN,
        VFGA,
        PDPGD,
        BrendelBethge,
        CWL0,
        StrAttack,
        GSE,
        WIFGSMPrinted,
        WIFGSM,
        Pinprick,
        PGD0,
        SparsePGD,
        SAPF,
        CornerSearch,
        JSMA,
        EGSTSSA,
        # l0, by scores alone
        BruSLe,
        SparseRS,
        OnePixel,
        SAMOO,
        Pixle,
        # by classes alone
        SparseEvo,
        Pointwise,
        HopSkipJump,
    )
}


def find_attack(name: str) -> type[Attack]:
    """The class of the attack ``name``: one of the table, or ``package.module:Class``."""
    if ":" in name and name.partition(":")[0] not in ATTACKS:  # "pgd:quick" is no class
        return load_class(name, ATTACKS)
    try:
        return ATTACKS[name]
    except KeyError:
        raise UnknownName("attack", name, ATTACKS) from None


__all__ = [
    "ATTACKS",
    "CWL0",
    "CWL2",
    "DIFGSM",
    "EGSTSSA",
    "FGSM",
    "FMN",
    "GSE",
    "IFGSM",
    "JSMA",
    "LBFGS",
    "MIFGSM",
    "PDPGD",
    "PGD",
    "PGD0",
    "RFGSM",
    "SAMOO",
    "SAPF",
    "TIFGSM",
    "VFGA",
    "WIFGSM",
    "Attack",
    "Auto",
    "BrendelBethge",
    "BruSLe",
    "Card",
    "CornerSearch",
    "DeepFool",
    "Greedy",
    "GreedyFool",
    "Homotopy",
    "HopSkipJump",
    "OnePixel",
    "Pinprick",
    "Pixle",
    "Pointwise",
    "SigmaZero",
    "SparseEvo",
    "SparseFool",
    "SparsePGD",
    "SparseRS",
    "StrAttack",
    "WIFGSMPrinted",
    "find_attack",
]
