import type { OutFrame, SourceFrame } from './answer.ts'

/** An upstream's frame, passed on to the caller byte for byte. */
export const passFrame = ({ event, json, bytes }: SourceFrame): OutFrame => ({
  event: event === '' ? null : event,
  data: json,
  bytes,
})
