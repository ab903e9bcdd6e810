"""Names for the tensors that flow through the package, with their shapes."""

from jaxtyping import Bool, Float, Int
from torch import Tensor

Images = Float[Tensor, "batch channel height width"]  # always in [0, 1], never normalised
Picture = Float[Tensor, "channel height width"]  # one image, in [0, 1]
Labels = Int[Tensor, " batch"]
Counts = Int[Tensor, " batch"]
Logits = Float[Tensor, "batch classes"]
PerImage = Float[Tensor, " batch"]
Mask = Bool[Tensor, " batch"]
Allowed = Bool[Tensor, "batch channel height width"]  # where values may change
Rows = Mask | Int[Tensor, " some"]  # a choice of images: a mask, or indices that may repeat
