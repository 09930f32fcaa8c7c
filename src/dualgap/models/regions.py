"""Regions in model files: numbers in the header, vectors in two arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..runtime.arrays import Floats

if TYPE_CHECKING:
    from ..core.regions import Region

_SIDES = ("below", "above")


def region_arrays(regions: Sequence[Region]) -> dict[str, Floats]:
    """The centres, a row for each score, and the directions of all rays, in their order."""
    centres = [region.centre.T if region.centre.ndim == 2 else region.centre[None] for region in regions]
    found = {"centres": np.vstack(centres).astype("<f8")}
    rays = [ray for region in regions for ray in (region.below, region.above) if ray is not None]
    if rays:
        found["directions"] = np.stack([ray.direction for ray in rays]).astype("<f8")
    return found


def region_fields(regions: Sequence[Region]) -> list[dict[str, Any]]:
    """The numbers of regions, for JSON."""
    return [
        {
            "radius": region.radius,
            "rho": region.rho,
            "free": region.free,
            "intercept": np.atleast_1d(region.intercept).tolist(),
            **{
                side: [cut._asdict() for cut in ray.cuts]
                for side, ray in zip(_SIDES, (region.below, region.above), strict=True)
                if ray is not None
            },
        }
        for region in regions
    ]


def regions_from(fields: Sequence[dict[str, Any]], arrays: dict[str, Any]) -> tuple[Region, ...]:
    """The regions of a header that has been checked, with its arrays."""
    from ..core.regions import Cut, Ray, Region

    for name in ("centres", "directions"):
        if name in arrays and not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} holds numbers that are not finite")
    directions = iter(arrays.get("directions", ()))
    centres, found, first = arrays["centres"], [], 0
    for each in fields:
        count = len(each["intercept"])
        part = centres[first : first + count]
        first += count
        rays = {
            side: Ray(next(directions), tuple(Cut(**cut) for cut in each[side]))
            for side in _SIDES
            if each.get(side) is not None
        }
        intercept = float(each["intercept"][0]) if count == 1 else np.array(each["intercept"], dtype=float)
        centre = part[0] if count == 1 else np.ascontiguousarray(part.T)
        found.append(
            Region(centre, intercept, float(each["radius"]), float(each["rho"]), each["free"], **rays)
        )
    return tuple(found)
