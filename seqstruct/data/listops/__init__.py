"""ListOps (Nangia and Bowman 2018), at the lengths of the Long Range Arena (Tay et al. 2021)."""
