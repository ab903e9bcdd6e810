"""Whether to go on at all: not where no image of a problem is answered any more."""

from pinprick.problem import Problem


def all_refused(problem: Problem) -> bool:
    """Whether every image was refused an answer; without a limit no device is waited for."""
    return problem.may_refuse and bool(problem.refused.all())
