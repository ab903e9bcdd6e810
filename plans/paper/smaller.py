"""Smaller forms of the paper's plans: for a test on a CPU, and for the first images on a CPU."""

from dataclasses import replace

from pinprick.bench.plan import Plan, Product

SMALL_MODEL, SMALL_DATA = "pinprick:fashion_cnn", "fashion_sample/test[0:4]"
SMALL_PASSES = 60
SMALL_SETTINGS = 6  # of an ablation
FIRST_SETTING = 5  # so that one of them fools an image: a figure needs a number


def reduce_plan(plan: Plan) -> Plan:
    """The same attacks with few passes on four images of the package, on a CPU."""
    return replace(plan, products=tuple(_reduce(one) for one in plan.products))


def _reduce(one: Product) -> Product:
    several = any(name.startswith("ensemble:") for name in one.models)
    ensemble = f"ensemble:{SMALL_MODEL}+{SMALL_MODEL}"
    attacks = one.attacks
    if len(attacks) > 4 * SMALL_SETTINGS:  # sweeps
        attacks = attacks[FIRST_SETTING :: len(attacks) // SMALL_SETTINGS]
    return replace(
        one,
        models=(SMALL_MODEL, ensemble) if several else (SMALL_MODEL,),
        victims=(f"rounded:{SMALL_MODEL}",) if one.victims else (),
        data=(SMALL_DATA,),
        attacks=attacks,
        seeds=one.seeds[:1],
        images_per_cell=4,
        batch_size=1 if one.batch_size == 1 else 4,
        max_passes=SMALL_PASSES,
        device="cpu",
        precision="float32",
    )


def reduce_to_cpu(plan: Plan, images: int) -> Plan:
    """The same plan on a CPU, in cells of at most so many images."""
    products = (
        replace(one, images_per_cell=min(images, one.images_per_cell)) for one in plan.products
    )
    on_cpu = (replace(one, device="cpu", precision="float32") for one in products)
    return replace(plan, products=tuple(on_cpu))
