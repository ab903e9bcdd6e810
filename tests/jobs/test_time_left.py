"""Groups of pictures share the time of --max-seconds."""

from dataclasses import replace

from torch import Tensor

from pinprick import Classifier, run_attack
from pinprick.attacks import FGSM
from pinprick.jobs.attack_group import TimeLeft


def test_each_result_takes_its_time_away(linear: Classifier, images: Tensor) -> None:
    labels = linear(images).argmax(dim=1)
    result = replace(run_attack(FGSM(), linear, images, labels), seconds=2.0)
    left, unbound = TimeLeft(5.0), TimeLeft(None)
    assert list(left.spend(iter([result, result]))) == [result, result]
    assert left.seconds == 1.0
    list(left.spend(iter([result])))
    assert left.seconds == 0.0
    list(unbound.spend(iter([result])))
    assert unbound.seconds is None
