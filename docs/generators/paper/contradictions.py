"""Where the paper contradicts itself, with its own numbers."""

from generators.paper.tables import published
from pinprick.report.docs_measured import markdown_table

CIFAR10, IMAGENET = 3 * 32 * 32, 3 * 224 * 224


def contradictions() -> str:
    """One line per contradiction: what is printed in two places, and what we do."""
    ours = published()["table1"]["elements"]["wifgsm"]
    ablation = published()["figure7"]
    strength = published()["table2"]["fooling_rate"]["wifgsm"]
    shares = [100 * ours[0] / CIFAR10, 100 * ours[2] / CIFAR10]
    lines = [
        (
            "tables against ablation",
            f"table 1: {ours[1]} elements at 100 % fooled, ε 4/255; figure 7 at its best a, λ and "
            f"τ, ε 6/255: {ablation['a']['elements']}, then {ablation['lam']['elements']} at "
            f"{ablation['lam']['fooling_rate']} %, then {ablation['tau']['elements']} at "
            f"{ablation['tau']['fooling_rate']} %",
            "both radii are swept; as printed, one τ for all images does not reach 100 %",
        ),
        (
            "unit",
            f"“{ours[0]} pixels (1.45 %)”, “{ours[2]} pixels (2.27 %)”: "
            f"that is {shares[0]:.2f} % and {shares[1]:.2f} % of all elements, but "
            f"{3 * shares[0]:.2f} % and {3 * shares[1]:.2f} % of all pixels",
            "the unit is elements, one channel value each; pages give both units",
        ),
        (
            "fooling rate of robust models",
            f"table 2: at most {max(strength)} % fooled, while table 1 counts elements for 100 %",
            "no budget is stated; with unlimited elements most attacks fool every image "
            "([table 2](paper_table2.md))",
        ),
        (
            "speed-ups",
            "two are ratios of sums, two are means of ratios, two are neither",
            "both are given for every attack",
        ),
        (
            "λ",
            "text: 1e-2 and 1e-3, a weight on the count; figure 7: 1e1 to 1e5, best at 1e3, "
            "“positively affects the sparsity but negatively influences the fooling rate”",
            "both conventions are swept ([figures](paper_figures.md)). The size is that of the "
            "weight on cross-entropy in the authors' code, the direction that of one on the count",
        ),
        (
            "step size",
            "learning rate 1e-2 on the printed loss moves a gate by about 1e-6 per step, while "
            "τ/ε = 19 is taken off: nothing ever opens",
            "`wifgsm_printed` multiplies the loss by 1e5, as the authors' code does",
        ),
        (
            "proof of the box rule",
            "Proposition 2 is proved for δ = ±ε or 0; I-FGSM with clipping gives values between",
            "the rule holds for all δ inside the ball; it leaves no room where a value is 0 or 1",
        ),
        (
            "I-FGSM",
            "equation 3 has the gradient at the clean image in every step, and steps of ε/T; the "
            "settings are ε 4/255, steps of 1/255, and 10 of them",
            "I-FGSM as published: the gradient at the current image, inside the ball",
        ),
    ]
    return markdown_table(("what", "the paper", "here"), lines)
