"""The report: one HTML file with everything that can be shown, for people who would rather look than read."""
