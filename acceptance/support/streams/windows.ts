/** A word of which the windows of the scripted scorer have a whole number. */
export const windowWord = 'abcdefghijklmnopqrstuvw'

/**
 * How many of the words have left once `sent` of them were sent. A window ends at the first space after 24 new characters: the first has
 * two words, each further one a space and a word. It is complete with the space after it.
 */
export const wordsScored = (sent: number): number => (sent < 3 ? 0 : sent - 1)
