export function isHighSurrogate(unit: number): boolean {
  return (unit & 0xfc00) === 0xd800
}

export function isLowSurrogate(unit: number): boolean {
  return (unit & 0xfc00) === 0xdc00
}

/** Whether a text, cut at `index`, would be cut between the halves of a surrogate pair. */
export function splitsPairAt(text: string, index: number): boolean {
  // charCodeAt gives NaN outside the text, which is no surrogate.
  return isLowSurrogate(text.charCodeAt(index)) && isHighSurrogate(text.charCodeAt(index - 1))
}
