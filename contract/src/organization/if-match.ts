import { z } from 'zod'

/** Entity tags as they were sent, or the bare number. A proxy may have marked them as weak. */
const tag = String.raw`(W/)?("\d{1,10}"|\d{1,10})`

/** The header by which a change names the revision of what it is about. */
export const ifMatchOf = (thing: string) =>
  z.object({
    'If-Match': z
      .string()
      .max(200)
      .regex(new RegExp(String.raw`^\s*(\*|${tag}(\s*,\s*${tag})*)\s*$`), {
        error: `must be the ETag of the ${thing} you have read, or *`,
      })
      .optional()
      .describe(`Save only if the ${thing} still has this ETag; otherwise 409.`),
  })

/** Whether a change may be made to this revision, by the `If-Match` of its request. */
export function matchesRevision(ifMatch: string | undefined, revision: number): boolean {
  if (ifMatch === undefined || ifMatch.trim() === '*') return true
  return ifMatch.split(',').some((each) => Number(/\d+/.exec(each)?.[0]) === revision)
}
