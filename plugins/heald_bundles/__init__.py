"""The bundle and the profile that Heald ships, as data files."""
