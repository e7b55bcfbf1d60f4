"""Networks for people and programs to read: as text, as a Mermaid flowchart, as JSON."""

from penstock.lang.explain.mermaid import explain_mermaid
from penstock.lang.explain.record import explain_dict
from penstock.lang.explain.text import explain_text

__all__ = ["explain_dict", "explain_mermaid", "explain_text"]
