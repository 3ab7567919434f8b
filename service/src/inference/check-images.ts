import type { Json } from '#formats/answer.ts'
import { isDataUrl } from '#formats/data-url.ts'
import type { ImagePart, Part, Turn } from '#formats/turn.ts'
import { toParam } from '#http/validate.ts'
import { ApiError } from '#platform/api-error.ts'

/** The images that every provider reads: media types, and how the first bytes of each look in Latin-1. */
const signatures: ReadonlyMap<string, (head: string) => boolean> = new Map([
  ['image/jpeg', (head: string) => head.startsWith('\xff\xd8\xff')],
  ['image/png', (head: string) => head.startsWith('\x89PNG\r\n\x1a\n')],
  ['image/gif', (head: string) => /^GIF8[79]a/.test(head)],
  // Between the two names is the length of the file.
  ['image/webp', (head: string) => head.startsWith('RIFF') && head.startsWith('WEBP', 8)],
])
const known = 'image/jpeg, image/png, image/gif or image/webp'

/** Enough base64 for the longest signature, even with a line break in it. */
const headLength = 32

/**
 * 400 for a base64 image that is not what its media type says. Otherwise we would hold credits and send the call, and the
 * provider would refuse it. Images that are sent by URL are not fetched.
 */
export function refuseBrokenImages(turn: Turn, body: Json) {
  for (const { source } of findImages(turn)) {
    if (source.type !== 'base64') continue
    const fault = findFault(source)
    if (fault === null) continue
    const path = findPath(body, source.data) ?? ['messages']
    const param = toParam('body', path)
    throw new ApiError('invalid_image', `'${param}' ${fault}.`, { param })
  }
}

const findImages = ({ messages }: Turn): ImagePart[] =>
  messages.flatMap(({ parts }) => parts.flatMap(imagesOf))

function imagesOf(part: Part): ImagePart[] {
  if (part.type === 'tool_result') return part.parts.flatMap(imagesOf)
  return part.type === 'image' ? [part] : []
}

/** The end of a sentence that starts with the name of the member; null for a good image. */
function findFault({ mediaType, data }: { mediaType: string; data: string }): string | null {
  const declared = nameOf(mediaType)
  const isOfType = signatures.get(declared)
  if (!isOfType) return `must be an image of type ${known}`
  const head = Buffer.from(data.slice(0, headLength), 'base64').toString('latin1')
  if (isOfType(head)) return null
  const found = [...signatures].find(([, isOther]) => isOther(head))?.[0]
  if (found) return `is an image of type ${found}, but its media type says ${declared}`
  return `is not the base64 of an image of type ${declared}`
}

/** `image/jpg` is not registered, but is widely sent. */
function nameOf(mediaType: string): string {
  const name = mediaType.toLowerCase()
  return name === 'image/jpg' ? 'image/jpeg' : name
}

/** Finds where the caller wrote the data, because a turn does not keep the places of its parts. */
function findPath(value: unknown, data: string): PropertyKey[] | null {
  if (typeof value === 'string') {
    const isHere = value === data || (isDataUrl(value) && value.endsWith(data))
    return isHere ? [] : null
  }
  if (typeof value !== 'object' || value === null) return null
  for (const [name, member] of Object.entries(value)) {
    const path = findPath(member, data)
    if (path) return [Array.isArray(value) ? Number(name) : name, ...path]
  }
  return null
}
