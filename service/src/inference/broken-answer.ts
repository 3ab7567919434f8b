/** The upstream sent something that is not an answer in its format. */
export class BrokenAnswer extends Error {
  override readonly name = 'BrokenAnswer'
}
