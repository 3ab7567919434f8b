const blank = String.raw`(?:\s|\\{1,64}(?:[nrt]|u0020))`
const quoteSign = String.raw`\\{0,64}"|\\{1,64}u0022`
/** The name of a member, as far as its last quote, and the colon behind it. A sign is part of the number. */
const named = new RegExp(
  String.raw`(?<quote>${quoteSign})${blank}{0,16}(?::|\\{1,64}u003[aA])${blank}{0,16}(?<sign>-?)$`,
)
/** The rest of the number, and what ends a value. */
const ended = new RegExp(
  String.raw`^(?<rest>(?:\.\d+)?(?:[eE][+-]?\d+)?)${blank}{0,32}(?:[,}\]]|\\{1,64}u00(?:2[cC]|[57][dD]))`,
)
/** As much of it as has come. */
const begun = new RegExp(
  String.raw`^\.?\d*(?:[eE][+-]?\d*)?${blank}{0,32}(?:\\{1,64}(?:u[\da-fA-F]{0,3})?)?$`,
)

/** How much stands before a number that has to be looked at: two escapes and some white space. */
export const contextBefore = 256

/** How far a number goes to both sides of a value, and what a string in its place has as quotes. */
type BareNumber = { readonly before: number; readonly after: number; readonly quote: string }

/**
 * Whether digits stand where JSON has the value of a member, wherever that JSON stands: in prose, in a block of code, or in a
 * string of other JSON, where its quotes are escaped. 'open': what comes next decides.
 */
export function findBareNumber(
  before: string,
  after: string,
  isWhole: boolean,
): BareNumber | 'open' | null {
  const name = named.exec(before)?.groups
  if (!name) return null
  const end = ended.exec(after)?.groups
  if (end) {
    const { quote = '"', sign = '' } = name
    return { before: sign.length, after: end['rest']?.length ?? 0, quote }
  }
  return !isWhole && begun.test(after) ? 'open' : null
}
