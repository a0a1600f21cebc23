"""The tool `ask_person`: a model's question to the person it works for."""
