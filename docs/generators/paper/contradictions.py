"""Where the paper contradicts itself, with its own numbers."""

from generators.paper.printed import published
from generators.paper.transfer import black_box_means
from pinprick.report.docs_measured import markdown_list

CIFAR10 = 3 * 32 * 32  # elements of an image


def contradictions() -> str:
    """One item per contradiction: what is printed in two places, and what we do."""
    ours = published()["table1"]["elements"]["wifgsm"]
    ablation = published()["figure7"]
    strength = published()["table2"]["fooling_rate"]["wifgsm"]
    inside = published()["table3"]["resnet101"]
    own, start = black_box_means("vgg19")
    seconds = published()["table4"]["seconds"]
    shares = [100 * ours[0] / CIFAR10, 100 * ours[2] / CIFAR10]
    found = {
        "Tables against ablation": (
            f"Table 1 has {ours[1]} elements with 100 % fooled, at ε 4/255. Figure 7 has "
            f"{ablation['lam']['elements']} elements with {ablation['lam']['fooling_rate']} % and "
            f"{ablation['tau']['elements']} with {ablation['tau']['fooling_rate']} % at its best "
            "values, at ε 6/255.",
            "The plans sweep both radii. As printed, one τ for all images does not reach 100 %.",
        ),
        "Unit": (
            f"“{ours[0]} (1.45 % pixels)” and “{ours[2]} (2.27 % pixels)” are {shares[0]:.2f} % "
            f"and {shares[1]:.2f} % of all elements. They are {3 * shares[0]:.2f} % and "
            f"{3 * shares[1]:.2f} % of all pixels.",
            "The unit is elements. Our pages give both units.",
        ),
        "Fooling rate of robust models": (
            f"Table 2 has at most {max(strength)} % fooled and no budget. Table 1 counts elements "
            "for 100 %.",
            "With unlimited elements most attacks fool every image ([table 2](paper_table2.md)).",
        ),
        "White-box rates": (
            f"Table 1 has 100 % for FMN on ImageNet, and table 3 has {inside['fmn'][2]} % of the "
            "attacked ResNet-101 itself. There GreedyFool fools the attacked network less often "
            f"({inside['greedyfool'][2]} %) than another one ({inside['greedyfool'][1]} %).",
            "Our tables have a fooling rate beside every number of elements.",
        ),
        "Transferability": (
            "The text says that its attack does not sacrifice transferability. In comments of the "
            f"source its start transfers to {start:.1f} % of the images from VGG-19, and its own "
            f"attack to {own:.1f} %.",
            "The page of [claims](paper_claims.md) has both, and ours.",
        ),
        "Time": (
            "Figure 1 has 3.86 s for its own attack and 36.9 s for BruSLeAttack, on VGG-16. Table "
            f"4 has {seconds['wifgsm'][0]} s and {seconds['brusle'][0]} s.",
            "Our times stand beside batch size and device ([table 4](paper_table4.md)).",
        ),
        "Speed-ups": (
            "The printed ones follow two ways of averaging, and two follow neither.",
            "We give both ways for every attack ([table 4](paper_table4.md)).",
        ),
        "Size of λ": (
            "The text has 1e-2 and 1e-3, a weight on the count. Figure 7 has 1e1 to 1e5, best at "
            "1e3.",
            "The size in figure 7 is that of the weight on cross-entropy in the authors' code.",
        ),
        "Direction of λ": (
            "It “positively affects the sparsity but negatively influences the fooling rate”.",
            "That is the direction of a weight on the count. The plans sweep both conventions "
            "([figures](paper_figures.md)).",
        ),
        "Step size": (
            "A learning rate of 1e-2 on the printed loss moves a gate by about 1e-6 per step. "
            "τ/ε = 19 is taken off, so no gate ever opens.",
            "`wifgsm_printed` multiplies the loss by 1e5, as the authors' code does.",
        ),
        "Proof of the box rule": (
            "Proposition 2 is proved for δ = ±ε or 0. I-FGSM with clipping gives values between.",
            "The rule holds for all δ inside the ball. It leaves no room where a value is 0 or 1.",
        ),
        "I-FGSM": (
            "Equation 3 has the gradient at the clean image in every step, and steps of ε/T. The "
            "settings are ε 4/255 and 10 steps of 1/255.",
            "We use I-FGSM as published: the gradient at the current image, inside the ball.",
        ),
    }
    return markdown_list(
        f"**{title}.** {paper} *Here:* {here}" for title, (paper, here) in found.items()
    )
