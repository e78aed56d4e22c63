"""Decision trees, random forests, extra trees: independent trees and their mean."""
