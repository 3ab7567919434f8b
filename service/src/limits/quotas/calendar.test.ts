import { describe, expect, test } from 'vitest'

import { calendarWindows, dayOf, periodAt } from './calendar.ts'

const at = (text: string) => new Date(text).getTime()
const daysOf = (window: (typeof calendarWindows)[number], text: string) => {
  const { firstDay, endDay } = periodAt(window, at(text))
  return [firstDay, endDay]
}

describe('a day', () => {
  test('lasts from midnight to midnight in UTC', () => {
    expect(daysOf('daily', '2026-11-16T00:00:00.000Z')).toEqual(['2026-11-16', '2026-11-17'])
    expect(daysOf('daily', '2026-11-16T23:59:59.999Z')).toEqual(['2026-11-16', '2026-11-17'])
    expect(daysOf('daily', '2026-12-31T23:59:59.999Z')).toEqual(['2026-12-31', '2027-01-01'])
    expect(daysOf('daily', '2028-02-29T12:00:00Z')).toEqual(['2028-02-29', '2028-03-01'])
    expect(daysOf('daily', '2026-11-16T01:30:00+02:00')).toEqual(['2026-11-15', '2026-11-16'])
  })
})

describe('a week', () => {
  test('begins on Monday', () => {
    expect(daysOf('weekly', '2026-11-15T23:59:59.999Z')).toEqual(['2026-11-09', '2026-11-16'])
    expect(daysOf('weekly', '2026-11-16T00:00:00.000Z')).toEqual(['2026-11-16', '2026-11-23'])
    expect(daysOf('weekly', '2026-11-22T23:59:59.999Z')).toEqual(['2026-11-16', '2026-11-23'])
  })
  test('may reach over the end of a month, of a year and over a leap day', () => {
    expect(daysOf('weekly', '2027-01-01T00:00:00Z')).toEqual(['2026-12-28', '2027-01-04'])
    expect(daysOf('weekly', '2026-12-31T23:59:59Z')).toEqual(['2026-12-28', '2027-01-04'])
    expect(daysOf('weekly', '2028-03-01T00:00:00Z')).toEqual(['2028-02-28', '2028-03-06'])
    expect(daysOf('weekly', '1970-01-01T00:00:00Z')).toEqual(['1969-12-29', '1970-01-05'])
  })
})

describe('a month', () => {
  test.for([
    ['2026-01-31T23:59:59.999Z', '2026-01-01', '2026-02-01'],
    ['2026-02-28T23:59:59.999Z', '2026-02-01', '2026-03-01'],
    ['2028-02-29T23:59:59.999Z', '2028-02-01', '2028-03-01'],
    ['2000-02-29T00:00:00.000Z', '2000-02-01', '2000-03-01'],
    ['2100-02-28T23:59:59.999Z', '2100-02-01', '2100-03-01'],
    ['2026-04-30T23:59:59.999Z', '2026-04-01', '2026-05-01'],
    ['2026-12-31T23:59:59.999Z', '2026-12-01', '2027-01-01'],
    ['2027-01-01T00:00:00.000Z', '2027-01-01', '2027-02-01'],
  ] as const)('%s is in that of %s', ([moment, first, end]) => {
    expect(daysOf('monthly', moment)).toEqual([first, end])
  })
})

test('from 1999 to 2101 the periods of a window follow each other without gaps and have names of their own', () => {
  for (const window of calendarWindows) {
    const names = new Set<string>()
    let atMs = at('1999-01-01T00:00:00Z')
    let count = 0
    while (atMs < at('2101-01-01T00:00:00Z')) {
      const period = periodAt(window, atMs)
      expect(periodAt(window, period.endsAtMs - 1)).toEqual(period)
      expect(periodAt(window, period.endsAtMs).firstDay).toBe(period.endDay)
      expect(dayOf(period.endsAtMs)).toBe(period.endDay)
      names.add(period.name)
      count++
      atMs = period.endsAtMs
    }
    expect(names.size).toBe(count)
    expect(count).toBe({ daily: 37_255, weekly: 5323, monthly: 1224 }[window])
  }
})
