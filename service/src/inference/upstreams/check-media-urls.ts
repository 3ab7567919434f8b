import type { Json } from '#formats/answer.ts'
import { ApiError } from '#platform/api-error.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'
import { within } from '#platform/deadline.ts'
import { checkTarget, EgressBlocked } from '#platform/egress-target.ts'
import type { FindAddresses } from '#platform/egress/find-addresses.ts'
import { isPublicAddress } from '#platform/egress/special-addresses.ts'

import type { Upstream } from './catalogue.ts'
import { findMediaUrls, type MediaUrl, mediaUrlsMax } from './find-media-urls.ts'

type Options = { findAddresses: FindAddresses; now: Clock; deadlineMs?: number }

/** `reason` is one sentence that is safe to show to callers: it reveals nothing about our network. */
type RefusedMediaUrl = MediaUrl & { reason: string }

/** Finds a URL in a request that its upstream may not get; null where there is none. */
export type FindRefusedMediaUrl = (
  upstream: Pick<Upstream, 'mediaUrls'>,
  body: Json,
) => Promise<RefusedMediaUrl | null>

const hostsAtOnce = 10
const cachedMs = 60_000
const cachedMax = 5000

/**
 * Media URLs are fetched by the upstream, from its own network. This keeps callers from reaching private addresses
 * through it; docs/security.md says what remains possible.
 */
export function createMediaUrlCheck(options: Options): FindRefusedMediaUrl {
  const findFault = createHostCheck(options)
  return async ({ mediaUrls }, body) => {
    if (mediaUrls === 'any') return null
    const found = findMediaUrls(body)
    const [first] = found
    if (!first) return null
    if (mediaUrls === 'refuse') {
      return { ...first, reason: 'This model takes media as data only.' }
    }
    if (found.length > mediaUrlsMax) {
      return {
        ...first,
        reason: `A request may have at most ${mediaUrlsMax} different media URLs.`,
      }
    }
    return findRefused(found, findFault)
  }
}

/** 400 for a refused URL. It names the place where the caller wrote it: a translated request has other places. */
export function toMediaUrlError({ url, path, reason }: RefusedMediaUrl, callerBody: Json) {
  const own = findMediaUrls(callerBody).find((each) => each.url === url)
  const param = `body.${own?.path ?? path}`.slice(0, 100)
  const remedy = "Send the data itself, or have the operator change 'media_urls' of the upstream."
  return new ApiError('unsupported_parameter', `'${param}' is refused: ${reason} ${remedy}`, {
    param,
  })
}

type FindFault = (host: string) => Promise<string | null>

async function findRefused(
  found: readonly MediaUrl[],
  findFault: FindFault,
): Promise<RefusedMediaUrl | null> {
  const byHost = new Map<string, MediaUrl>()
  for (const media of found) {
    const read = readHost(media.url)
    if ('reason' in read) return { ...media, ...read }
    byHost.set(read.host, media)
  }
  let refused: RefusedMediaUrl | null = null
  const waiting = byHost.entries()
  const checkSome = async () => {
    for (const [host, media] of waiting) {
      const reason = await findFault(host)
      if (reason !== null) refused ??= { ...media, reason }
      if (refused) return
    }
  }
  await Promise.all(Array.from({ length: hostsAtOnce }, checkSome))
  return refused
}

/** The name that an upstream will resolve. One that the URL parser changes may be another name to other parsers. */
function readHost(url: string): { host: string } | { reason: string } {
  try {
    const { hostname: host } = checkTarget(url, { privateTargets: [] })
    if (url.toLowerCase().startsWith(`https://${host}`)) return { host }
    return { reason: 'The host name must be written in ASCII.' }
  } catch (error) {
    if (error instanceof EgressBlocked) return { reason: error.reason }
    throw error
  }
}

/** One message for both, so that callers cannot find out which names exist on a private network. */
const notPublic = 'The host name has no address, or one outside the public internet.'
const notResolved = 'The host name could not be resolved; retry later.'

/** Resolves a name at most once a minute. A failure is not cached. */
function createHostCheck({ findAddresses, now, deadlineMs = 1000 }: Options): FindFault {
  const answers = new BoundedMap<string, { isPublic: Promise<boolean>; untilMs: number }>(cachedMax)

  async function ask(host: string): Promise<boolean> {
    const tooLate = () => new Error('The name servers did not answer in time.')
    const addresses = await within(deadlineMs, tooLate, () => findAddresses(host))
    return addresses.length > 0 && addresses.every((address) => isPublicAddress(address))
  }

  function findOrAsk(host: string): Promise<boolean> {
    const known = answers.get(host)
    if (known && now().getTime() < known.untilMs) return known.isPublic
    const isPublic = ask(host)
    answers.set(host, { isPublic, untilMs: now().getTime() + cachedMs })
    return isPublic
  }

  return async (host) => {
    try {
      return (await findOrAsk(host)) ? null : notPublic
    } catch {
      answers.delete(host)
      return notResolved
    }
  }
}
