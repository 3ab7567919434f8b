/** An upstream sent bytes that are not an answer in its format. */
export class BrokenAnswer extends Error {
  override readonly name = 'BrokenAnswer'
}
