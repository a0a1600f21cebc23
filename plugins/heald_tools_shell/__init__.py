"""A shell tool: one persistent shell for each agent."""
