"""The metadata shell: a metadata image as a tree of directories and files (`kafka-metadata-shell`).

- `nodes`: the node types and their printers
- `image_tree`: the tree of an image, with the names and texts of `org.apache.kafka.image.node`
- `globs`, `commands`: what a user types
- `loading`: an image and its control records from a snapshot or a log directory, at any offset or time
- `following`: the same from live controllers, up to the high watermark
- `differences`: the files that differ between two trees
"""
