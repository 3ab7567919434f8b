/** What a guard takes of one answer. */
export const guardLimits = {
  /**
   * What may wait while an answer streams, in characters that rules see, of all channels together. A channel by itself waits for a
   * window, or for the widest match. The rest of it came after characters of another channel that are not decided: the texts of
   * parallel tool calls may come in turns, and one of them slowly. Where windows wait for a scorer, `isFull` asks for a pause long
   * before.
   */
  heldMostStreaming: 64 * 1024,
  /** As much as a scorer judges at once, so that a pause leaves it enough to do. */
  unreadMostScored: 16 * 1024,
  /** So few characters are looked at with those that follow them: each look costs as much as some of them. */
  wantedMost: 24,
  /** What may wait where a rule needs the whole answer. A longer answer is not judged, and so does not leave. */
  heldMostFull: 1024 * 1024,
  /** An answer's text is kept to compare it with texts that repeat it whole. */
  textMost: 4 * 1024 * 1024,
  /** Each string in the arguments of a tool call is a channel, so there may be many; few of them grow at once. */
  growingChannelsMost: 256,
  channelsMost: 16 * 1024,
} as const
