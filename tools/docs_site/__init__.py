"""The site of the documentation: pages of docs/, generated pages, and Sphinx to build them."""
