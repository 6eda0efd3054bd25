"""The last stage: generated C as a part of somebody's project, whatever builds it."""
