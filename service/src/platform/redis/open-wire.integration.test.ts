import { expect, onTestFinished, test } from 'vitest'

import { openWire } from './open-wire.ts'
import { startRedisDouble } from './testing/redis-double.ts'

class Late extends Error {}

/** Opens a wire and waits until it is ready. */
async function connect(url: string, deadlineMs = 10_000) {
  const problems: Error[] = []
  let readyTimes = 0
  const wire = openWire({
    url,
    deadlineMs,
    createLateError: () => new Late('late'),
    silentMaxMs: 300,
    retryDelayMs: () => 10,
    connectTimeoutMs: 300_000,
    onProblem: (error) => problems.push(error),
    onReady: () => readyTimes++,
  })
  onTestFinished(wire.close)
  const ready = async (times: number) =>
    await expect.poll(() => readyTimes, { timeout: 5000 }).toBe(times)
  await ready(1)
  return { wire, problems, ready }
}

test('the commands of one turn are one write, and each gets its own answer', async () => {
  const { url, writes } = await startRedisDouble(([, number]) => `:${number}\r\n`)
  const { wire } = await connect(url)
  const answers = await Promise.all([1, 2, 3].map((number) => wire.send(['N', String(number)])))
  expect(answers).toEqual([1, 2, 3])
  expect(writes).toEqual([1, 3]) // the greeting, and the three
})

test('numbers, bytes, texts, nothing and errors are told apart, also in pieces', async () => {
  const answers = [':-7\r\n', '$4\r\na\r\nb\r\n', '+OK\r\n', '$-1\r\n', '$0\r\n\r\n', '-ERR no\r\n']
  const { url } = await startRedisDouble((_, socket) => {
    for (const character of answers.shift() ?? '') socket.write(character)
    return undefined
  })
  const { wire } = await connect(url)
  const ask = () => wire.send(['ASK'])
  expect(await ask()).toBe(-7)
  expect(await ask()).toEqual(Buffer.from('a\r\nb'))
  expect(await ask()).toBe('OK')
  expect(await ask()).toBeNull()
  expect(await ask()).toEqual(Buffer.alloc(0))
  await expect(ask()).rejects.toThrow('ERR no')
})

test('arguments arrive byte by byte, whatever they contain', async () => {
  const { url, commands } = await startRedisDouble(() => '+OK\r\n')
  const { wire } = await connect(url)
  const bytes = Buffer.from([0, 13, 10, 128, 255])
  await wire.send(['SET', 'größe €', bytes, ''])
  const sent = commands.at(-1)?.map((each) => Buffer.from(each, 'latin1'))
  expect(sent).toEqual([Buffer.from('SET'), Buffer.from('größe €'), bytes, Buffer.alloc(0)])
})

test('credentials and the database are sent first, decoded', async () => {
  const { url, commands } = await startRedisDouble(() => '+OK\r\n')
  await connect(`${url.replace('//', '//us%40er:pass%2Fword@')}/3`)
  expect(commands).toEqual([['AUTH', 'us@er', 'pass/word'], ['SELECT', '3'], ['PING']])
})

test('a late answer is given up on, and the next command still gets its own', async () => {
  const late: (() => void)[] = []
  const { url } = await startRedisDouble(([name], socket) => {
    if (name !== 'SLOW') return '+fast\r\n'
    late.push(() => socket.write('+slow\r\n'))
    return undefined
  })
  const { wire } = await connect(url, 200)
  await expect(wire.send(['SLOW'])).rejects.toThrow(Late)
  late[0]?.()
  expect(await wire.send(['FAST'])).toBe('fast')
})

test('a connection on which nothing is answered any more is replaced', async () => {
  const { url, sockets } = await startRedisDouble(([name]) =>
    name === 'LOST' ? undefined : '+OK\r\n',
  )
  const { wire, problems, ready } = await connect(url, 100)
  const [first] = sockets
  while (problems.length === 0)
    await expect(wire.send(['LOST'])).rejects.toThrow(/late|answering|connected/)
  expect(problems.map(({ message }) => message)).toEqual(['Redis has stopped answering'])
  await ready(2)
  expect(first?.destroyed).toBe(true)
  expect(await wire.send(['PLAIN'])).toBe('OK')
})

test('commands that are late together do not end a connection that goes on answering', async () => {
  const late: (() => void)[] = []
  const { url, sockets } = await startRedisDouble(([name], socket) => {
    if (name !== 'SLOW') return '+fast\r\n'
    late.push(() => socket.write('+slow\r\n'))
    return undefined
  })
  const { wire } = await connect(url, 100)
  const [first] = sockets
  const given = await Promise.allSettled(Array.from({ length: 50 }, () => wire.send(['SLOW'])))
  expect(new Set(given.map(({ status }) => status))).toEqual(new Set(['rejected']))
  for (const answer of late) answer()
  expect(await wire.send(['FAST'])).toBe('fast')
  expect(first?.destroyed).toBe(false)
})

test('a lost connection fails its commands and those until it is back, and none is sent twice', async () => {
  const { url, sockets, commands } = await startRedisDouble(([name]) =>
    name === 'HANG' ? undefined : '+OK\r\n',
  )
  const { wire, problems, ready } = await connect(url)
  const hanging = wire.send(['HANG'])
  await expect.poll(() => commands.at(-1)).toEqual(['HANG'])
  for (const socket of sockets) socket.destroy()
  await expect(hanging).rejects.toThrow('lost')
  await expect(wire.send(['EARLY'])).rejects.toThrow('not connected')
  await ready(2)
  expect(await wire.send(['AFTER'])).toBe('OK')
  expect(problems.length).toBeGreaterThan(0)
  expect(commands.map(([name]) => name)).toEqual(['PING', 'HANG', 'PING', 'AFTER'])
})

test.each(['*1\r\n:1\r\n', 'nonsense\r\n', '$abc\r\n', '$-5\r\n', ':1x\r\n'])(
  'an answer that is not understood closes the connection: %j',
  async (answer) => {
    const { url } = await startRedisDouble(([name]) => (name === 'ODD' ? answer : '+OK\r\n'))
    const { wire, ready } = await connect(url)
    await expect(wire.send(['ODD'])).rejects.toThrow('neither a number nor a string')
    await ready(2)
    expect(await wire.send(['PLAIN'])).toBe('OK')
  },
)

test('a server that refuses the credentials is a problem, and commands fail', async () => {
  const { url } = await startRedisDouble(([name]) =>
    name === 'AUTH' ? '-WRONGPASS\r\n' : '+OK\r\n',
  )
  const problems: string[] = []
  const wire = openWire({
    url: url.replace('//', '//:secret@'),
    deadlineMs: 1000,
    createLateError: () => new Late('late'),
    silentMaxMs: 300,
    retryDelayMs: () => 10,
    connectTimeoutMs: 300_000,
    onProblem: ({ message }) => problems.push(message),
    onReady: () => problems.push('ready'),
  })
  onTestFinished(wire.close)
  await expect.poll(() => problems.length, { timeout: 5000 }).toBeGreaterThan(1)
  expect(new Set(problems)).toEqual(new Set(['WRONGPASS']))
  await expect(wire.send(['ANY'])).rejects.toThrow('not connected')
})
