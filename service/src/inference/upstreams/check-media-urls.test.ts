import { describe, expect, test } from 'vitest'

import { createTestClock } from '#testing/test-gateway.ts'

import { createMediaUrlCheck, toMediaUrlError } from './check-media-urls.ts'

const image = (url: string) => ({ type: 'image_url', image_url: { url } })
const bodyOf = (...urls: string[]) => ({ messages: [{ role: 'user', content: urls.map(image) }] })
const upstream = { mediaUrls: 'public' } as const

/** Name servers that know these names; `slow` names are answered never, `broken` ones with an error. */
function prepare(names: Record<string, readonly string[]> = {}) {
  const { now, pass } = createTestClock()
  const asked: string[] = []
  const running = { now: 0, most: 0 }
  async function findAddresses(host: string) {
    asked.push(host)
    running.most = Math.max(running.most, ++running.now)
    await new Promise((resolve) => setImmediate(resolve))
    running.now--
    if (host.startsWith('slow')) return new Promise<never>(() => undefined)
    if (host.startsWith('broken')) throw Object.assign(new Error('10.1.2.3'), { code: 'ESERVFAIL' })
    return names[host] ?? []
  }
  const check = createMediaUrlCheck({ findAddresses, now, deadlineMs: 50 })
  const reasonFor = async (...urls: string[]) =>
    (await check(upstream, bodyOf(...urls)))?.reason ?? 'accepted'
  return { check, reasonFor, asked, pass, running }
}

const noPublicAddress = 'The host name has no address, or one outside the public internet.'

describe('public', () => {
  test('a name whose addresses are all public is accepted', async () => {
    const { reasonFor } = prepare({ 'cdn.example.com': ['93.184.215.14', '2606:2800:21f::1'] })
    expect(await reasonFor('https://cdn.example.com/cat.png?size=2')).toBe('accepted')
    expect(await reasonFor('HTTPS://CDN.Example.com:443/cat.png')).toBe('accepted')
  })

  test.each([
    [['10.0.0.1']],
    [['93.184.215.14', '169.254.169.254']],
    [['93.184.215.14', '::1']],
    [['fd00:ec2::254']],
    [['::ffff:10.0.0.1']],
    [['64:ff9b::7f00:1']],
    [[]],
  ])('a name is refused whose addresses are %j, in the same words', async (addresses) => {
    const { reasonFor } = prepare({ 'a.example.com': addresses })
    expect(await reasonFor('https://a.example.com/')).toBe(noPublicAddress)
  })

  test.each([
    ['http://cdn.example.com/', /https/],
    ['file:///etc/passwd', /https/],
    ['gopher://127.0.0.1:6379/_FLUSHALL', /https/],
    ['/etc/passwd', /https/],
    ['https://127.0.0.1/', /not an IP address/],
    ['https://0x7f.1/', /not an IP address/],
    ['https://2130706433/', /not an IP address/],
    ['https://①②⑦.0.0.1/', /not an IP address/],
    ['https://[::ffff:10.0.0.1]/', /not an IP address/],
    ['https://8.8.8.8/', /not an IP address/],
    ['https://metadata.google.internal/', /private networks/],
    ['https://localhost/', /private networks/],
    ['https://vllm/', /full host name/],
    ['https://me@cdn.example.com/', /user name/],
    ['https://cdn.example.com\\@10.0.0.1/', /backslash/],
    ['https://cdn.example.com:6379/', /port/],
    ['https://faß.example.com/', /ASCII/],
    ['https://cdn%2eexample.com/', /ASCII/],
  ])('%s is refused without a question to the name servers', async (url, reason) => {
    const { reasonFor, asked } = prepare()
    expect(await reasonFor(url)).toMatch(reason)
    expect(asked).toEqual([])
  })

  test('one bad URL among good ones refuses the request, and is named', async () => {
    const { check } = prepare({ 'a.example.com': ['8.8.8.8'], 'b.example.com': ['10.0.0.1'] })
    const body = bodyOf(
      'https://a.example.com/',
      'https://b.example.com/',
      'https://a.example.com/2',
    )
    expect(await check(upstream, body)).toEqual({
      url: 'https://b.example.com/',
      path: 'messages[0].content[1].image_url.url',
      reason: noPublicAddress,
    })
  })

  test('a name is resolved once a minute', async () => {
    const { reasonFor, asked, pass } = prepare({ 'a.example.com': ['8.8.8.8'] })
    await reasonFor('https://a.example.com/1', 'https://a.example.com/2')
    await Promise.all([reasonFor('https://a.example.com/3'), reasonFor('https://b.example.com/')])
    pass(59_999)
    expect(await reasonFor('https://a.example.com/4')).toBe('accepted')
    expect(await reasonFor('https://b.example.com/')).toBe(noPublicAddress)
    expect(asked).toEqual(['a.example.com', 'b.example.com'])
    pass(1)
    await reasonFor('https://a.example.com/5')
    expect(asked).toEqual(['a.example.com', 'b.example.com', 'a.example.com'])
  })

  test.each(['slow', 'broken'])(
    'a failure of the name servers refuses the request, and the next one asks again: %s',
    async (kind) => {
      const { reasonFor, asked } = prepare()
      for (let call = 1; call <= 2; call++) {
        expect(await reasonFor(`https://${kind}.example.com/`)).toBe(
          'The host name could not be resolved; retry later.',
        )
        expect(asked).toHaveLength(call)
      }
    },
  )

  test('a request may have 100 URLs, and asks for ten names at once', async () => {
    const hosts = Array.from({ length: 100 }, (_, index) => `h${index}.example.com`)
    const urls = hosts.map((host) => `https://${host}/`)
    const { reasonFor, asked, running } = prepare(
      Object.fromEntries(hosts.map((host) => [host, ['8.8.8.8']])),
    )
    expect(await reasonFor(...urls, ...urls)).toBe('accepted')
    expect(asked.toSorted()).toEqual(hosts.toSorted())
    expect(running.most).toBe(10)
    expect(await reasonFor(...urls, 'https://h0.example.com/other')).toBe(
      'A request may have at most 100 different media URLs.',
    )
    expect(asked).toHaveLength(100)
  })

  test('after a refusal no further names are resolved', async () => {
    const urls = Array.from({ length: 100 }, (_, index) => `https://h${index}.example.com/`)
    const { reasonFor, asked } = prepare()
    expect(await reasonFor(...urls)).toBe(noPublicAddress)
    expect(asked).toHaveLength(10)
  })
})

test('refuse: every media URL is refused; any: none is; both ask no name server', async () => {
  const { check, asked } = prepare({ 'a.example.com': ['8.8.8.8'] })
  const body = bodyOf('https://a.example.com/')
  expect(await check({ mediaUrls: 'refuse' }, body)).toMatchObject({
    path: 'messages[0].content[0].image_url.url',
    reason: 'This model takes media as data only.',
  })
  expect(await check({ mediaUrls: 'any' }, bodyOf('http://10.0.0.1/'))).toBeNull()
  expect(await check({ mediaUrls: 'refuse' }, bodyOf('data:image/png;base64,AA'))).toBeNull()
  expect(asked).toEqual([])
})

test('the error names the place in the request of the caller, and what the operator can do', async () => {
  const refused = {
    url: 'http://a/',
    path: 'messages[0].content[0].image_url.url',
    reason: 'Because.',
  }
  const source = { type: 'url', url: 'http://a/' }
  const callerBody = { messages: [{ content: 'a' }, { content: [{ type: 'image', source }] }] }
  expect(toMediaUrlError(refused, callerBody)).toMatchObject({
    code: 'unsupported_parameter',
    status: 400,
    param: 'body.messages[1].content[0].source.url',
    message:
      "'body.messages[1].content[0].source.url' is refused: Because. " +
      "Send the data itself, or have the operator change 'media_urls' of the upstream.",
  })
  expect(toMediaUrlError(refused, {}).param).toBe('body.messages[0].content[0].image_url.url')
  const long = { ...refused, path: 'x'.repeat(1000), reason: noPublicAddress }
  expect(toMediaUrlError(long, {}).message).toMatch(/of the upstream\.$/)
})
