"""All sets that have a name. To add one: write its file, then add its line here."""

from pinprick.data import cifar10, cifar100, fashion_mnist, fashion_sample, imagenet, mnist
from pinprick.data.source import Source
from pinprick.errors import UnknownName

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        mnist.SOURCE,
        fashion_mnist.SOURCE,
        fashion_sample.SOURCE,
        cifar10.SOURCE,
        cifar100.SOURCE,
        imagenet.SOURCE,
    )
}
FORMS = ("folder:PATH", "csv:PATH", "tensors:PATH")


def find_source(name: str) -> Source:
    if name not in SOURCES:
        raise UnknownName("dataset", name, [*SOURCES, *FORMS])
    return SOURCES[name]
