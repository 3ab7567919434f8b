import type { Json } from '#formats/answer.ts'
import { isDataUrl } from '#formats/data-url.ts'

/** A URL that a server may fetch to read an image or another medium, and its path in the request. */
export type MediaUrl = { url: string; path: string }

/**
 * What a string means at a place in a request. `address`: servers fetch it or open it as a file, whatever it looks like.
 * `media`: it is base64, or is fetched if it looks like an address. `source`: only its member `url` is an address.
 */
type Place = 'address' | 'media' | 'source' | 'other'

const addressMembers = 'image_url video_url audio_url file_url document_url'.split(' ')
const mediaMembers = (
  'image images input_image video videos input_video audio audios input_audio ' +
  'document file file_data input_file'
).split(' ')

/**
 * Places by the name of a member, in lower case because servers written in Go ignore the case. If the `type` of a part does not
 * decide for servers, it does not decide here either: vLLM reads `image_url` in a text part that has a `uuid`. llama.cpp
 * fetches `input_audio.data` that starts with `http`, and SGLang opens an `image_url` that is the path of a file.
 */
const places: ReadonlyMap<string, Place> = new Map([
  ...addressMembers.map((name) => [name, 'address'] as const),
  ...mediaMembers.map((name) => [name, 'media'] as const),
  ['source', 'source'],
])

/** The caller's own data: arguments of tools and their schemas. No server looks for media there. */
const skipped: ReadonlySet<string> = new Set([
  'input',
  'arguments',
  'input_examples',
  'input_schema',
  'parameters',
  'schema',
])

const mediaType = /^(?:input_)?(?:image|video|audio|file|document)/
const addressLike = /^\s*(?:http|file:|[a-z][a-z\d+.-]*:\/\/)/i

/** The most different media URLs that are looked for. */
export const mediaUrlsMax = 100

/**
 * Finds the different media URLs of a request as an upstream gets it, in any format. Stops at one more than `mediaUrlsMax`.
 * Data URLs are not among them, nor are URLs in texts, citations and search results. Requests are read with a bounded depth, so
 * recursion is safe.
 */
export function findMediaUrls(body: Json): MediaUrl[] {
  const found = new Map<string, MediaUrl>()
  const path: (string | number)[] = []

  function visit(value: unknown, place: Place, step: string | number) {
    if (found.size > mediaUrlsMax) return
    if (typeof value === 'string') {
      if (!isMediaUrl(value, place) || found.has(value)) return
      found.set(value, { url: value, path: writePath([...path, step]) })
    } else if (typeof value === 'object' && value !== null) {
      path.push(step)
      if (Array.isArray(value)) visitItems(value, place)
      else visitMembers(value as Json, place)
      path.pop()
    }
  }

  function visitItems(items: readonly unknown[], place: Place) {
    for (let index = 0; index < items.length; index++) visit(items[index], place, index)
  }

  function visitMembers(object: Json, place: Place) {
    const { type } = object
    const own = typeof type === 'string' && mediaType.test(type) ? 'media' : place
    for (const name of Object.keys(object)) {
      if (!skipped.has(name)) visit(object[name], placeOf(name, own), name)
    }
  }

  for (const name of Object.keys(body)) {
    // At the top `input` is the conversation; `metadata` is the caller's own.
    if (name !== 'metadata') visit(body[name], placeOf(name, 'other'), name)
  }
  return [...found.values()]
}

/** `messages[0].content` */
const writePath = (path: readonly (string | number)[]): string =>
  path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .slice(1)

/** The place that a member has in an object at `parent`. */
function placeOf(member: string, parent: Place): Place {
  const name = member.toLowerCase()
  if (name === 'url' && parent !== 'other') return 'address'
  if (name === 'data' && (parent === 'media' || parent === 'address')) return 'media'
  return places.get(name) ?? 'other'
}

function isMediaUrl(text: string, place: Place): boolean {
  if (place === 'media') return addressLike.test(text)
  return place === 'address' && text !== '' && !isDataUrl(text)
}
