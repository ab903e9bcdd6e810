"""Where images come from: one file per dataset or form of one."""
