import { describe, expect, test } from 'vitest'

import { normalise } from '#text/normalise.ts'

import { EntityScanner } from './entity-scanner.ts'
import { entityHold, type EntityKind } from './entity.ts'
import { harmless, hostileUnits, planted } from './testing/corpus.ts'

type Entity = { kind: EntityKind; start: number; end: number }

function scan(pieces: readonly string[]): Entity[] {
  const found: Entity[] = []
  const scanner = new EntityScanner({
    begin: (kind, start) => void found.push({ kind, start, end: -1 }),
    end: (end) => void (found.at(-1)!.end = end),
  })
  for (const piece of pieces) scanner.read(piece)
  scanner.end()
  return found
}

const valuesIn = (text: string) =>
  scan([text]).map(({ kind, start, end }) => [kind, text.slice(start, end)])

describe('what is found', () => {
  test.each(planted)('%j has one %s', (text, kind) => {
    expect(scan([normalise(text).text]).map((entity) => entity.kind)).toEqual([kind])
  })

  test.each(harmless)('%j has none', (text) => {
    expect(valuesIn(normalise(text).text)).toEqual([])
  })

  test('an entity is found from its first to its last character', () => {
    expect(
      valuesIn(
        'Mail .jane@example.com. Call (212) 555-0123! Pay 4111-1111-1111-1111-5 to 10.0.0.1.',
      ),
    ).toEqual([
      ['EMAIL', 'jane@example.com'],
      ['PHONE', '(212) 555-0123'],
      ['CARD', '4111-1111-1111-1111'],
      ['IP', '10.0.0.1'],
    ])
    expect(valuesIn('token: "abcdef", password=\'ghijkl\'')).toEqual([
      ['SECRET', 'abcdef'],
      ['SECRET', 'ghijkl'],
    ])
  })

  const dashes = Array.from('-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d')
  test.each(dashes)('a dash between digits is one, whichever it is: %j', (dash) => {
    for (const [kind, value] of [
      ['SSN', '123-45-6789'],
      ['PHONE', '212-555-0123'],
      ['PHONE', '+49-30-901820'],
      ['CARD', '4111-1111-1111-1111'],
      ['IBAN', 'DE89-3704-0044-0532-0130-00'],
    ] as const) {
      const text = normalise(`It is ${value.replaceAll('-', dash)}.`).text
      expect(valuesIn(text)).toEqual([[kind, text.slice(6, -1)]])
    }
    expect(valuesIn(normalise(`item 99${dash}123${dash}45${dash}6789`).text)).toEqual([])
    // It is no part of a word.
    if (dash !== '-') expect(valuesIn('Ask\u2014jane@a.com')).toEqual([['EMAIL', 'jane@a.com']])
  })

  test('a number in the name of an address is part of the address, unless it begins before the name', () => {
    expect(valuesIn('x.212-555-0123@a.com')).toEqual([['EMAIL', 'x.212-555-0123@a.com']])
    expect(valuesIn('+49 30 901820.x@a.com')).toEqual([
      ['PHONE', '+49 30 901820'],
      ['EMAIL', 'x@a.com'],
    ])
  })

  test('what follows an entity at once is found, as it will be when a placeholder stands there', () => {
    expect(valuesIn('(212) 555-0123+49 30 901820 and 0123+49 30 901820')).toEqual([
      ['PHONE', '(212) 555-0123'],
      ['PHONE', '+49 30 901820'],
    ])
  })

  test('a long name of an address counts from its last 64 characters on', () => {
    expect(valuesIn(`${'a'.repeat(100)}@b.com`)).toEqual([['EMAIL', `${'a'.repeat(64)}@b.com`]])
  })

  test('a key ends with its footer, or with what cannot be part of it', () => {
    const [begin, end] = ['-----BEGIN PRIVATE', '-----END PRIVATE'].map((it) => `${it} KEY-----`)
    const body = 'MIIE'.repeat(200)
    const head = 'Proc-Type: 4,ENCRYPTED DEK-Info: AES-128-CBC,0F (x.y)'
    expect(valuesIn(`${begin} ${head} ${body} ${end} x`)).toEqual([
      ['SECRET', `${begin} ${head} ${body} ${end}`],
    ])
    expect(valuesIn(`\`${begin}\` begins a key`)).toEqual([['SECRET', begin]])
    expect(valuesIn(`${begin} ${body}. More`)).toEqual([['SECRET', `${begin} ${body}`]])
    expect(valuesIn(begin + 'M'.repeat(20_000))[0]![1]).toHaveLength(8000)
  })

  test('a full stop behind a token is not part of it', () => {
    const token = ['eyJhbGciOiJIUzI1NiJ9', 'eyJzdWIiOiIx', 'dozjgN'].join('.')
    expect(valuesIn(`It is ${token}. And so on`)).toEqual([['SECRET', token]])
  })
})

describe('what waits', () => {
  const lagsOf = (text: string) => {
    let isOpen = false
    const scanner = new EntityScanner({
      begin: () => void (isOpen = true),
      end: () => void (isOpen = false),
    })
    return Array.from(text, (character, index) => {
      scanner.read(character)
      return isOpen ? 0 : index + 1 - scanner.settled
    })
  }

  test('a word waits until it is over, because it may be the name of an address', () => {
    expect(lagsOf('one fine')).toEqual([1, 2, 3, 0, 1, 2, 3, 4])
  })

  test('no more waits than is declared, whatever the text', () => {
    const texts = [...planted.map(([text]) => text), ...harmless]
    for (const unit of Object.values(hostileUnits)) texts.push(unit.repeat(2000 / unit.length))
    const most = Math.max(...texts.flatMap(lagsOf))
    expect(most).toBeLessThanOrEqual(entityHold)
    // The bound is no larger than it has to be.
    expect(Math.max(...lagsOf(`${'a'.repeat(63)}-eyJ${'a'.repeat(448)}.ey`))).toBeGreaterThan(
      entityHold - 5,
    )
    expect(Math.max(...lagsOf(`${'a'.repeat(64)}@${'b'.repeat(300)}`))).toBe(319)
  })

  test('a key is certain with its header, and nothing of it waits', () => {
    const seen: string[] = []
    const scanner = new EntityScanner({ begin: (kind) => void seen.push(kind) })
    scanner.read(`${'-----BEGIN PRIVATE'} KEY-----`)
    expect(seen).toEqual(['SECRET'])
    scanner.read('M'.repeat(5000))
    expect(scanner.settled).toBe(5027)
  })
})

test('the time grows with the length of a text only', { timeout: 120_000 }, () => {
  const timeOf = (text: string) => {
    const before = process.threadCpuUsage()
    scan([text])
    const { user, system } = process.threadCpuUsage(before)
    return (user + system) / 1000
  }
  const report: string[] = []
  for (const [name, unit] of Object.entries(hostileUnits)) {
    const long = unit.repeat(Math.ceil(200_000 / unit.length))
    const short = long.slice(0, 20_000)
    let [shortMs, longMs] = [0, Infinity]
    // A time under a tenth of a millisecond says nothing.
    const isLinear = () => longMs < 15 * Math.max(shortMs, 0.1)
    // Other work on the machine disturbs some rounds. If the time grew with the square of the length, none would come near.
    for (let round = 0; round < 20 && !isLinear(); round++) {
      shortMs = timeOf(short)
      longMs = timeOf(long)
    }
    report.push(`${name} ${shortMs.toFixed(1)}/${longMs.toFixed(1)}`)
    expect(isLinear(), `${name} ${shortMs}/${longMs}`).toBe(true)
  }
  console.log(`scanner: ms for 20 KB and 200 KB: ${report.join(', ')}`)
})
