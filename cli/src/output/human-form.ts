import { type Page, pageIn } from '../page.ts'
import { type Column, fitTable } from './fit-table.ts'
import { aligned, withoutControls, wrapped } from './text-columns.ts'
import { minuteOf, secondOf, timeIn } from './times.ts'

type Item = Record<string, unknown>

export type Form = {
  /** How many characters a line of the terminal has. */
  width: number
  /** The columns of a list, the most important first; without them all plain members are columns. */
  columns?: readonly string[] | undefined
}

/** An answer as a table or as one line per member. Scripts use `--json`. */
export function humanForm(answer: unknown, form: Form): string {
  return `${linesOf(answer, form).join('\n')}\n`
}

function linesOf(answer: unknown, form: Form): string[] {
  const page = pageIn(answer)
  if (page) return linesOfPage(page, form)
  if (!isItem(answer)) return linesOfItem({ answer })
  return Array.isArray(answer['data']) ? linesOfReport(answer, form) : linesOfItem(answer)
}

const isItem = (value: unknown): value is Item =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function linesOfPage({ data, has_more, last_id }: Page, form: Form): string[] {
  const more = has_more ? ['', `There is more: --after ${last_id} shows the next page.`] : []
  return [...linesOfItems(data, form), ...more]
}

/** What a list is about, then the list. Its other members that are lists, such as sums, are tables too. */
function linesOfReport({ data, ...report }: Item, form: Form): string[] {
  const members = Object.entries(report)
  const about = members.filter(([, value]) => !Array.isArray(value))
  const lists = members.filter(([, value]) => Array.isArray(value)) as [string, unknown[]][]
  return [
    ...linesOfItem(Object.fromEntries(about)),
    '',
    ...linesOfItems(data as unknown[], form),
    ...lists.flatMap(([name, items]) => ['', `${name}:`, ...linesOfItems(items, form)]),
  ]
}

function linesOfItems(data: readonly unknown[], { width, columns }: Form): string[] {
  const items = data.filter(isItem)
  if (items.length === 0) return ['Nothing to list.']
  const found = (columns ?? plainMembers(items)).map((path) => columnOf(path, items))
  const filled = found.filter(({ cells }) => cells.some((cell) => cell !== '-' && cell !== ''))
  const { rows, left } = fitTable(filled, width)
  const note = `No room for ${left.join(', ')}: a wider terminal or --json shows all.`
  return [...aligned(rows), ...(left.length > 0 ? ['', ...wrapped(note, width)] : [])]
}

/** Id and name first, times last; members that are objects or lists are shown for single items only. */
function plainMembers(items: readonly Item[]): string[] {
  const members = new Set(items.flatMap(Object.keys))
  members.delete('object')
  const plain = [...members].filter((member) => items.every((item) => isPlain(item[member])))
  return plain.toSorted((left, right) => rank(left) - rank(right))
}

function rank(member: string): number {
  const first = ['id', 'name'].indexOf(member)
  if (first >= 0) return first
  return member.endsWith('_at') ? 3 : 2
}

const isPlain = (value: unknown) => typeof value !== 'object' || value === null

function columnOf(path: string, items: readonly Item[]): Column {
  const values = items.map((item) => valueAt(item, path))
  const name = path.split('.').at(-1) ?? path
  const times = values.map((value) => timeIn(name, value))
  const head = path.replace(/^record\./, '')
  return {
    head: times.some((time) => time !== undefined) ? `${head} (UTC)` : head,
    cells: values.map((value, index) => {
      const time = times[index]
      return time ? minuteOf(time) : withoutControls(textOf(name, value))
    }),
    canBeCut: values.every((value, index) => canBeCut(name, value) && times[index] === undefined),
  }
}

const valueAt = (item: Item, path: string) =>
  path.split('.').reduce<unknown>((value, name) => (isItem(value) ? value[name] : undefined), item)

/** An id is never shortened: the next command needs all of it. */
function canBeCut(name: string, value: unknown): boolean {
  if (value === null || value === undefined) return true
  const isNeeded = name === 'id' || name.endsWith('_id') || name === 'redacted_value'
  return typeof value === 'string' && !isNeeded && !/^[a-z]{3,6}_[0-9a-z]{24}$/.test(value)
}

function linesOfItem(item: Item): string[] {
  const members = flattened(item)
  const names = aligned(members.map(([name]) => [`${name}:`, '|'])).map((line) => line.slice(0, -1))
  const indent = `\n${' '.repeat(names[0]?.length ?? 0)}`
  return [
    ...members.map(([name, value], index) => {
      const lines = textOf(name, value).split('\n').map(withoutControls)
      return `${names[index]}${lines.join(indent)}`.trimEnd()
    }),
    ...('value' in item && 'redacted_value' in item ? ['', shownOnce] : []),
  ]
}

const shownOnce = 'Store the value now: it is shown only once and cannot be read again.'

/** Members of nested objects get dotted names: `owner.id`. The member `object` is left out. */
function flattened(item: Item, prefix = ''): [name: string, value: unknown][] {
  return Object.entries(item)
    .filter(([name]) => name !== 'object')
    .flatMap(([name, value]): [string, unknown][] =>
      isItem(value) ? flattened(value, `${prefix}${name}.`) : [[`${prefix}${name}`, value]],
    )
}

function textOf(name: string, value: unknown): string {
  if (value === null || value === undefined) return '-'
  const time = timeIn(name.split('.').at(-1) ?? name, value)
  if (time) return secondOf(time)
  if (typeof value === 'string') return value
  if (isUsage(value))
    return value.limit === null ? String(value.used) : `${value.used}/${value.limit}`
  const isListOfPlain = Array.isArray(value) && value.every(isPlain)
  return isListOfPlain ? value.join(', ') || '-' : JSON.stringify(value)
}

/** What of a quota or a budget is used. */
const isUsage = (value: unknown): value is { used: number; limit: number | null } =>
  isItem(value) && Object.keys(value).toSorted().join() === 'limit,used'
