"""Storage without a disk: the smallest backend to read, and the quickest to test with.

Mount the plugin `persistence-memory` in place of `persistence`. Logs live as long as the process,
so no profile has it. It publishes nothing: what it provides is
`heald_persistence.session_persistence`.
"""
