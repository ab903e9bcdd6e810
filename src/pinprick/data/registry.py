"""All sets that have a name. To add one: write its file, then add its line here."""

from pinprick.data.sets import cifar, fashion_sample, imagenet, mnist
from pinprick.data.source import Source
from pinprick.errors import UnknownName

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        mnist.MNIST,
        mnist.FASHION_MNIST,
        fashion_sample.SOURCE,
        cifar.CIFAR10,
        cifar.CIFAR100,
        imagenet.SOURCE,
    )
}
FORMS = ("folder:PATH", "csv:PATH", "tensors:PATH")


def find_source(name: str) -> Source:
    if name not in SOURCES:
        raise UnknownName("dataset", name, [*SOURCES, *FORMS])
    return SOURCES[name]
