/**
 * The constants that decide how a value becomes objects. They are part of the
 * format: another number gives other ids, so none of them may ever change.
 */

/** A value whose canonical form has at most this many bytes is one blob. */
export const LEAF_MAX_BYTES = 2048;

/** Deepest nesting of a value; the value itself is depth 0. */
export const DEPTH_MAX = 256;

/** Longest object key, in bytes of its escaped form. */
export const KEY_MAX_BYTES = 3072;

/** An object or a bucket with more entries than this fans out by the hash of the key. */
export const FLAT_MAX_ENTRIES = 256;

/** A list element whose canonical form has more bytes than this stands alone. */
export const ELEMENT_MAX_BYTES = 1024;

/** A run of elements, or of pieces of text, closes once it has this many bytes. */
export const RUN_MAX_BYTES = 2048;

/** The size that content-defined cuts aim at: an element of n bytes cuts with probability n in this. */
export const RUN_TARGET_BYTES = 1024;

/** No content-defined cut before a run has this many elements. */
export const RUN_MIN_COUNT = 2;

/** A run closes once it has this many elements. */
export const RUN_MAX_COUNT = 512;

/** A line longer than this many code points is cut into pieces of this many. */
export const PIECE_MAX_CODE_POINTS = 512;

/** No content-defined cut before a node has this many entries. */
export const NODE_MIN_COUNT = 4;

/** A node closes once it has this many entries. */
export const NODE_MAX_COUNT = 48;

/** One child id in this many closes a node. */
export const NODE_CUT_ONE_IN = 16;
