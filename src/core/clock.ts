/** The last second that a commit's date may hold: 9999-12-31T23:59:59Z. */
export const MAX_COMMIT_SECONDS = 253_402_300_799;
