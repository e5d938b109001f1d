"""From records to numbers, tables and figures. Reads records and manifests; runs nothing."""
