/** How much of a text may be sent: not a stop sequence or anything after it, and no ending that may become one. */
export function splitAtStop(text: string, stops: readonly string[], isLast: boolean) {
  const found = stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0)
  if (found.length > 0) return { end: Math.min(...found), isStopped: true }
  if (isLast) return { end: text.length, isStopped: false }
  // The last character may be incomplete, with more bytes to come.
  const whole = text.endsWith('\uFFFD') ? text.replace(/\uFFFD+$/, '').length : text.length
  const held = stops.map((stop) => overlap(text, stop))
  return { end: Math.min(whole, text.length - Math.max(0, ...held)), isStopped: false }
}

/** The length of the longest suffix of the text that is a prefix of the stop sequence. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(stop.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(stop.slice(0, length))) return length
  }
  return 0
}
