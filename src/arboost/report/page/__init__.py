"""The report page: payload -> one HTML file without network requests."""

from arboost.report.page.assemble import SECTIONS, assemble, frame

__all__ = ["SECTIONS", "assemble", "frame"]
