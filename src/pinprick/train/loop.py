"""The training loop: perturb a batch as the recipe says, take a step, validate after each epoch.

No step waits for the device: losses are summed there and read once per epoch. Random numbers follow
from seed, epoch and image, so an epoch depends only on the weights before it.
"""

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace

import torch
from torch import Tensor, nn

from pinprick.data.dataset import Dataset
from pinprick.errors import BadInput
from pinprick.goal import Goal
from pinprick.model import Classifier
from pinprick.problem import Problem
from pinprick.train.exam import evenly_spaced
from pinprick.train.feed import Augment, Batch, Feed, MemoryFeed
from pinprick.train.graphs import GraphedPasses
from pinprick.train.material import Material
from pinprick.train.optimise import (
    Average,
    half_precision,
    load_optimiser,
    make_optimiser,
    optimiser_tensors,
    set_lr,
    step_loss,
    tuned,
)
from pinprick.train.picture_feed import PictureFeed
from pinprick.train.plan import Plan
from pinprick.train.progress import Epoch, Progress, Validation
from pinprick.train.recipes.recipe import Recipe
from pinprick.zoo.card import ModelCard
from pinprick.zoo.from_card import build, wrap_net

Tick = Callable[[int, int], None]  # steps done, and steps of the epoch


class Trainer:
    """A network in training: weights, optimiser, batches and progress.

    Attributes:
        plan: What to train, and how.
        card: The network's card, without facts.
        net: The network in training.
        progress: The epochs so far.
    """

    def __init__(self, plan: Plan, material: Material, device: torch.device | str) -> None:
        self.plan, self.device = plan, torch.device(device)
        schedule = plan.schedule
        self.card = _card(plan, material)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed_for(plan.seed, "weights"))
            net = build(self.card)
        self.net = net.to(self.device)
        if self.device.type == "cuda":
            self.net = self.net.to(memory_format=torch.channels_last)
        self.average = None if schedule.ema is None else Average(self.net, schedule.ema)
        self.optimiser = make_optimiser(self.net, schedule)
        self.model = wrap_net(self.net, self.card, plan.net)
        self._stepper = self.model
        if schedule.compile:
            compiled = torch.compile(self.net)
            self._stepper = Classifier(compiled, mean=self.card.mean, std=self.card.std)
        self.feed = _make_feed(plan, material.train, self.card, self.device)
        graphs = self.device.type == "cuda" and schedule.graphs and not schedule.compile
        graphs = graphs and self.card.ablation is None  # its steps are on images of another shape
        double = schedule.trades is not None
        self._passes = GraphedPasses(self.net, self.model, double=double) if graphs else None
        self._test = self._validation(material.test)
        self._train = self._validation(material.train) if plan.recipe.guarded() else None
        self.progress = Progress()

    @property
    def final_net(self) -> nn.Module:
        """The network that is measured and saved: averaged, where the plan asks for it."""
        return self.net if self.average is None else self.average.net

    @property
    def final_model(self) -> Classifier:
        return wrap_net(self.final_net, self.card, self.plan.net)

    def _validation(self, data: Dataset) -> Validation:
        few = evenly_spaced(data, self.plan.schedule.watch_images)
        return Validation(few, self.model, self.device, self.plan.seed)

    def epochs(self, tick: Tick | None = None) -> Iterator[Epoch]:
        """Train the epochs that are left; those that are rolled back are given too."""
        while self.progress.epochs < self.plan.schedule.epochs and not self.progress.stopped:
            before = self.tensors() if self._train is not None else None
            epoch = self._epoch(tick)
            if before is not None and self._collapsed(epoch):
                epoch = Epoch(**{**asdict(epoch), "rolled_back": True})
                self._roll_back(before)
            else:
                self._accept(epoch)
            self.progress.seconds = epoch.seconds
            self.progress.history.append(asdict(epoch))
            yield epoch

    def tensors(self) -> dict[str, Tensor]:
        """A copy of everything that the next epoch depends on."""
        nets = {"net": self.net} | ({"average": self.average.net} if self.average else {})
        found = {
            f"{key}/{name}": value
            for key, net in nets.items()
            for name, value in _named_tensors(net)
        }
        found |= optimiser_tensors(self.optimiser)
        return {name: tensor.detach().clone() for name, tensor in found.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Return to the state that ``tensors`` gave."""
        nets = {"net": self.net} | ({"average": self.average.net} if self.average else {})
        with torch.no_grad():
            for key, net in nets.items():
                for name, value in _named_tensors(net):
                    value.copy_(tensors[f"{key}/{name}"])
        load_optimiser(self.optimiser, tensors)

    def _epoch(self, tick: Tick | None) -> Epoch:
        plan, schedule, number = self.plan, self.plan.schedule, self.progress.epochs
        recipe = self._recipe()
        size, batch_size = schedule.phase_at(number)
        size = self.card.size[0] if size is None else size
        batch_size = min(batch_size, len(self.feed))
        steps = len(self.feed) // batch_size
        seed = seed_for(plan.seed, f"epoch {number}, rollback {self.progress.rollbacks}")
        start = time.perf_counter()
        loss, right = (torch.zeros((), device=self.device) for _ in range(2))
        self.net.train()
        lr = 0.0
        with tuned(self.device):
            for step, batch in enumerate(self.feed.batches(number, seed, batch_size, size)):
                share = (number + (step + 1) / steps) / schedule.epochs
                lr = schedule.lr_at((number + step / steps) / schedule.epochs)
                set_lr(self.optimiser, lr)
                one_loss, one_right = self._step(recipe, batch, schedule.strength_at(share))
                loss += one_loss
                right += one_right
                if self.average is not None:
                    self.average.update(number * steps + step)
                if tick is not None:
                    tick(step + 1, steps)
        probe = plan.recipe.probe(plan.exam.exam_eps)
        accuracy = self._test.accuracy(self.final_model)
        robust = self._test.robust_accuracy(self.final_model, probe)
        watched = None if self._train is None else self._train.robust_accuracy(self.model, probe)
        return Epoch(
            number=number + 1,
            loss=loss.item() / steps,
            train_accuracy=right.item() / (steps * batch_size),
            accuracy=accuracy,
            robust_accuracy=robust,
            watched=watched,
            lr=lr,
            seconds=self.progress.seconds + time.perf_counter() - start,
        )

    def _step(self, recipe: Recipe, batch: Batch, strength: float) -> tuple[Tensor, Tensor]:
        """One step of the optimiser; gives the loss and the correct predictions, on the device."""
        labels, schedule = batch.labels, self.plan.schedule
        attacked, stepper = self.model, self._stepper
        if self._passes is not None:
            attacked, stepper = self._passes.for_batch(batch.images)
        with half_precision(self.device):  # weights are cast once for all passes of the attack
            problem = Problem(attacked, batch.images, Goal(labels), batch.rng)
            images = recipe.perturb(problem, strength).detach()
        if schedule.trades is not None:
            images = torch.cat((images, batch.images))
        with half_precision(
            self.device
        ):  # cast again: the attack may have cast them without gradient
            logits = stepper(images).float()
            loss = step_loss(logits, labels, schedule)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        return loss.detach(), (logits[: len(labels)].detach().argmax(dim=1) == labels).sum()

    def _recipe(self) -> Recipe:
        """The plan's recipe, made more careful once per epoch rolled back."""
        recipe = self.plan.recipe
        for _ in range(self.progress.rollbacks):
            recipe = recipe.careful() or recipe
        return recipe

    def _collapsed(self, epoch: Epoch) -> bool:
        assert epoch.watched is not None
        fell = epoch.watched < self.progress.best - self.plan.schedule.drop
        return fell or not math.isfinite(epoch.loss)

    def _roll_back(self, before: dict[str, Tensor]) -> None:
        self.restore(before)
        self.progress.stopped = self._recipe().careful() is None
        self.progress.rollbacks += 1

    def _accept(self, epoch: Epoch) -> None:
        if not math.isfinite(epoch.loss):
            raise BadInput(
                f"the loss is no longer a number in epoch {epoch.number}; "
                f"try a lower learning rate than {self.plan.schedule.lr:g}, with lr=..."
            )
        self.progress.epochs += 1
        self.progress.best = max(self.progress.best, epoch.watched or 0.0)


def _card(plan: Plan, material: Material) -> ModelCard:
    """The card of the plan's network, still without facts."""
    card = material.card(plan.net, plan.schedule.last_size)
    ablation = plan.recipe.ablation(plan.seed)
    if ablation is None:
        return card
    if plan.schedule.trades is not None:
        raise BadInput(
            f"{plan.recipe.name} does not train on clean images, which trades needs; "
            "set trades=none"
        )
    if plan.schedule.phases:
        raise BadInput(f"{plan.recipe.name} trains on images of one size; leave out phases")
    return replace(card, mean=None, std=None, ablation=ablation)


def _make_feed(plan: Plan, data: Dataset, card: ModelCard, device: torch.device) -> Feed:
    schedule = plan.schedule
    if data.pixels is None:
        return PictureFeed(data, device, flip=schedule.flip)
    if schedule.phases:
        raise BadInput(f"phases of growing size are for picture files; {data.name} has one size")
    cover = 0.5 if card.mean is None else sum(card.mean) / len(card.mean)
    augment = Augment(schedule.crop, schedule.flip, schedule.cutout, cover)
    return MemoryFeed(data, augment, device, seed=plan.seed)


def _named_tensors(net: nn.Module) -> list[tuple[str, Tensor]]:
    return list(net.state_dict().items())


def seed_for(seed: int, use: str) -> int:
    """A separate seed per use, from the seed of the plan."""
    digest = hashlib.blake2b(f"{seed}: {use}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
