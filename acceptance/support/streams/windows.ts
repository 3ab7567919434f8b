/** A word of which the first windows of moderation have a whole number. */
export const windowWord = 'abcdefghijklmnopqrstuvw'

/** After how many such words the windows of 96, 160 and 256 characters end, each at the next space. */
const windowEnds: readonly number[] = [5, 12, 23]

/** How many of the words have left when so many were sent: a window is complete with the space after it. */
export const wordsScored = (sent: number): number => windowEnds.findLast((end) => end < sent) ?? 0
