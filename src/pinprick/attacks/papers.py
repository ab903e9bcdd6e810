"""The papers of the attacks, and the BibTeX entry of each."""

import re
import unicodedata
from typing import NamedTuple

from pinprick import __version__


class Paper(NamedTuple):
    """Where an attack was published.

    Attributes:
        authors: All of them, full names, in order.
        title: Of the paper, proper names and acronyms in braces.
        venue: The conference or journal.
        year: Of publication there.
        arxiv: The number of its preprint; empty if there is none.
        journal: Whether the venue is a journal.
    """

    authors: str
    title: str
    venue: str
    year: int
    arxiv: str = ""
    journal: bool = False

    def bibtex(self, key: str) -> str:
        """The entry under ``key``."""
        kind, field = ("article", "journal") if self.journal else ("inproceedings", "booktitle")
        fields = {
            "author": self.authors.replace(", ", " and "),
            "title": self.title,
            field: self.venue,
            "year": str(self.year),
        }
        if self.arxiv:
            fields |= {"eprint": self.arxiv, "archiveprefix": "arXiv"}
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
        return "\n".join([f"@{kind}{{{key},", *lines, "}"])

    @property
    def plain_title(self) -> str:
        """The title as people read it."""
        return re.sub(r"[{}$]", "", self.title).replace("\\sigma", "σ").replace("\\ell", "l")

    @property
    def key(self) -> str:
        """The first author's last name and the year, in plain letters."""
        last = self.authors.split(", ")[0].split()[-1].lower()
        plain = unicodedata.normalize("NFKD", last).encode("ascii", "ignore").decode()
        return f"{plain}{self.year}"


_CROCE_2019 = Paper(
    "Francesco Croce, Matthias Hein",
    "Sparse and Imperceivable Adversarial Attacks",
    "IEEE/CVF International Conference on Computer Vision",
    2019,
    "1909.05040",
)
_CARLINI_2017 = Paper(
    "Nicholas Carlini, David Wagner",
    "Towards Evaluating the Robustness of Neural Networks",
    "IEEE Symposium on Security and Privacy",
    2017,
    "1608.04644",
)
_ICLR = "International Conference on Learning Representations"
_CVPR = "IEEE/CVF Conference on Computer Vision and Pattern Recognition"
_NEURIPS = "Advances in Neural Information Processing Systems"
_ICML = "International Conference on Machine Learning"

_WIFGSM = Paper(
    "Fudong Lin, Jiadong Lou, Hao Wang, Brian Jalaian, Xu Yuan",
    "Towards Interpretable Adversarial Examples via Sparse Adversarial Attack",
    "arXiv preprint",
    2025,
    "2506.17250",
    journal=True,
)
PAPERS = {
    "fgsm": Paper(
        "Ian J. Goodfellow, Jonathon Shlens, Christian Szegedy",
        "Explaining and Harnessing Adversarial Examples",
        _ICLR,
        2015,
        "1412.6572",
    ),
    "rfgsm": Paper(
        "Florian Tramèr, Alexey Kurakin, Nicolas Papernot, Ian Goodfellow, Dan Boneh, "
        "Patrick McDaniel",
        "Ensemble Adversarial Training: Attacks and Defenses",
        _ICLR,
        2018,
        "1705.07204",
    ),
    "ifgsm": Paper(
        "Alexey Kurakin, Ian Goodfellow, Samy Bengio",
        "Adversarial Examples in the Physical World",
        f"{_ICLR}, Workshop Track",
        2017,
        "1607.02533",
    ),
    "pgd": Paper(
        "Aleksander Madry, Aleksandar Makelov, Ludwig Schmidt, Dimitris Tsipras, Adrian Vladu",
        "Towards Deep Learning Models Resistant to Adversarial Attacks",
        _ICLR,
        2018,
        "1706.06083",
    ),
    "mifgsm": Paper(
        "Yinpeng Dong, Fangzhou Liao, Tianyu Pang, Hang Su, Jun Zhu, Xiaolin Hu, Jianguo Li",
        "Boosting Adversarial Attacks with Momentum",
        _CVPR,
        2018,
        "1710.06081",
    ),
    "difgsm": Paper(
        "Cihang Xie, Zhishuai Zhang, Yuyin Zhou, Song Bai, Jianyu Wang, Zhou Ren, Alan L. Yuille",
        "Improving Transferability of Adversarial Examples with Input Diversity",
        _CVPR,
        2019,
        "1803.06978",
    ),
    "tifgsm": Paper(
        "Yinpeng Dong, Tianyu Pang, Hang Su, Jun Zhu",
        "Evading Defenses to Transferable Adversarial Examples by Translation-Invariant Attacks",
        _CVPR,
        2019,
        "1904.02884",
    ),
    "lbfgs": Paper(
        "Christian Szegedy, Wojciech Zaremba, Ilya Sutskever, Joan Bruna, Dumitru Erhan, "
        "Ian Goodfellow, Rob Fergus",
        "Intriguing Properties of Neural Networks",
        _ICLR,
        2014,
        "1312.6199",
    ),
    "deepfool": Paper(
        "Seyed-Mohsen Moosavi-Dezfooli, Alhussein Fawzi, Pascal Frossard",
        "{DeepFool}: A Simple and Accurate Method to Fool Deep Neural Networks",
        "IEEE Conference on Computer Vision and Pattern Recognition",
        2016,
        "1511.04599",
    ),
    "cw_l2": _CARLINI_2017,
    "cw_l0": _CARLINI_2017,
    "sparsefool": Paper(
        "Apostolos Modas, Seyed-Mohsen Moosavi-Dezfooli, Pascal Frossard",
        "{SparseFool}: A Few Pixels Make a Big Difference",
        _CVPR,
        2019,
        "1811.02248",
    ),
    "greedyfool": Paper(
        "Xiaoyi Dong, Dongdong Chen, Jianmin Bao, Chuan Qin, Lu Yuan, Weiming Zhang, Nenghai Yu, "
        "Dong Chen",
        "{GreedyFool}: Distortion-Aware Sparse Adversarial Attack",
        _NEURIPS,
        2020,
        "2010.13773",
    ),
    "homotopy": Paper(
        "Mingkang Zhu, Tianlong Chen, Zhangyang Wang",
        "Sparse and Imperceptible Adversarial Attack via a Homotopy Algorithm",
        _ICML,
        2021,
        "2106.06027",
    ),
    "sigma_zero": Paper(
        "Antonio Emanuele Cinà, Francesco Villani, Maura Pintor, Lea Schönherr, Battista Biggio, "
        "Marcello Pelillo",
        "$\\sigma$-zero: Gradient-Based Optimization of $\\ell_0$-Norm Adversarial Examples",
        _ICLR,
        2025,
        "2402.01879",
    ),
    "fmn": Paper(
        "Maura Pintor, Fabio Roli, Wieland Brendel, Battista Biggio",
        "Fast Minimum-Norm Adversarial Attacks through Adaptive Norm Constraints",
        _NEURIPS,
        2021,
        "2102.12827",
    ),
    "vfga": Paper(
        "Manon Césaire, Lucas Schott, Hatem Hajri, Sylvain Lamprier, Patrick Gallinari",
        "Stochastic Sparse Adversarial Attacks",
        "IEEE International Conference on Tools with Artificial Intelligence",
        2021,
        "2011.12423",
    ),
    "pdpgd": Paper(
        "Alexander Matyasko, Lap-Pui Chau",
        "{PDPGD}: Primal-Dual Proximal Gradient Descent Adversarial Attack",
        "arXiv preprint",
        2021,
        "2106.01538",
        journal=True,
    ),
    "gse": Paper(
        "Shpresim Sadiku, Moritz Wagner, Sebastian Pokutta",
        "{GSE}: Group-wise Sparse and Explainable Adversarial Attacks",
        _ICLR,
        2025,
        "2311.17434",
    ),
    "brendel_bethge": Paper(
        "Wieland Brendel, Jonas Rauber, Matthias Kümmerer, Ivan Ustyuzhaninov, Matthias Bethge",
        "Accurate, Reliable and Fast Robustness Evaluation",
        _NEURIPS,
        2019,
        "1907.01003",
    ),
    "strattack": Paper(
        "Kaidi Xu, Sijia Liu, Pu Zhao, Pin-Yu Chen, Huan Zhang, Quanfu Fan, Deniz Erdogmus, "
        "Yanzhi Wang, Xue Lin",
        "Structured Adversarial Attack: Towards General Implementation and Better Interpretability",
        _ICLR,
        2019,
        "1808.01664",
    ),
    "wifgsm": _WIFGSM,
    "wifgsm_printed": _WIFGSM,
    "pgd0": _CROCE_2019,
    "corner_search": _CROCE_2019,
    "sparse_pgd": Paper(
        "Xuyang Zhong, Yixiao Huang, Chen Liu",
        "Towards Efficient Training and Evaluation of Robust Models against $l_0$ Bounded "
        "Adversarial Perturbations",
        _ICML,
        2024,
        "2405.05075",
    ),
    "sapf": Paper(
        "Yanbo Fan, Baoyuan Wu, Tuanhui Li, Yong Zhang, Mingyang Li, Zhifeng Li, Yujiu Yang",
        "Sparse Adversarial Attack via Perturbation Factorization",
        "European Conference on Computer Vision",
        2020,
    ),
    "jsma": Paper(
        "Nicolas Papernot, Patrick McDaniel, Somesh Jha, Matt Fredrikson, Z. Berkay Celik, "
        "Ananthram Swami",
        "The Limitations of Deep Learning in Adversarial Settings",
        "IEEE European Symposium on Security and Privacy",
        2016,
        "1511.07528",
    ),
    "egs_tssa": Paper(
        "Di Ming, Peng Ren, Yunlong Wang, Xin Feng",
        "Transferable Structural Sparse Adversarial Attack via Exact Group Sparsity Training",
        _CVPR,
        2024,
    ),
    "brusle": Paper(
        "Viet Quoc Vo, Ehsan Abbasnejad, Damith C. Ranasinghe",
        "{BruSLeAttack}: A Query-Efficient Score-Based Black-Box Sparse Adversarial Attack",
        _ICLR,
        2024,
        "2404.05311",
    ),
    "sparse_rs": Paper(
        "Francesco Croce, Maksym Andriushchenko, Naman D. Singh, Nicolas Flammarion, Matthias Hein",
        "{Sparse-RS}: A Versatile Framework for Query-Efficient Sparse Black-Box Adversarial "
        "Attacks",
        "AAAI Conference on Artificial Intelligence",
        2022,
        "2006.12834",
    ),
    "onepixel": Paper(
        "Jiawei Su, Danilo Vasconcellos Vargas, Kouichi Sakurai",
        "One Pixel Attack for Fooling Deep Neural Networks",
        "IEEE Transactions on Evolutionary Computation",
        2019,
        "1710.08864",
        journal=True,
    ),
    "sa_moo": Paper(
        "Phoenix Neale Williams, Ke Li",
        "Black-Box Sparse Adversarial Attack via Multi-Objective Optimisation",
        _CVPR,
        2023,
    ),
    "sparse_evo": Paper(
        "Viet Quoc Vo, Ehsan Abbasnejad, Damith C. Ranasinghe",
        "Query Efficient Decision Based Sparse Attacks Against Black-Box Deep Learning Models",
        _ICLR,
        2022,
        "2202.00091",
    ),
    "pixle": Paper(
        "Jary Pomponi, Simone Scardapane, Aurelio Uncini",
        "{Pixle}: A Fast and Effective Black-Box Attack Based on Rearranging Pixels",
        "International Joint Conference on Neural Networks",
        2022,
        "2202.02236",
    ),
    "pointwise": Paper(
        "Lukas Schott, Jonas Rauber, Matthias Bethge, Wieland Brendel",
        "Towards the First Adversarially Robust Neural Network Model on {MNIST}",
        _ICLR,
        2019,
        "1805.09190",
    ),
    "hopskipjump": Paper(
        "Jianbo Chen, Michael I. Jordan, Martin J. Wainwright",
        "{HopSkipJumpAttack}: A Query-Efficient Decision-Based Attack",
        "IEEE Symposium on Security and Privacy",
        2020,
        "1904.02144",
    ),
}


def bibtex(name: str) -> str:
    """The entry to cite for the attack ``name``; Pinprick itself for our own."""
    paper = PAPERS.get(name)
    if paper is not None:
        return paper.bibtex(paper.key)
    return "\n".join(
        [
            "@software{pinprick,",
            "  author = {{The Pinprick authors}},",
            "  title = {Pinprick},",
            f"  version = {{{__version__}}},",
            "}",
        ]
    )
