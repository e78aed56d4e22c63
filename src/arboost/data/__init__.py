"""Any table and target -> schema, levels, bins, codes, Dataset."""
