import { z } from 'zod'

import type { ClaimNames } from './read-sign-in.ts'
import type { ClaimName } from './sign-in-file.ts'

/** What a provider says about an account, in our words. */
export type Identity = {
  /** The provider's own name of the account, which never becomes another account's. */
  readonly subject: string
  /** In lower case. */
  readonly email: string | null
  readonly isEmailVerified: boolean
  readonly name: string | null
  readonly groups: readonly string[]
  /** Whether the provider has left groups out, as Entra ID does above 200. */
  readonly lacksGroups: boolean
  readonly appRoles: readonly string[]
  /** That of the organization which manages the account at the provider, where a claim names it; otherwise that of the address. */
  readonly domain: string | null
}

export type Claims = Readonly<Record<string, unknown>>

const groupsMax = 2000
const Subject = z.string().min(1).max(255)
const Email = z.email().max(254)

/** Null for claims without a usable `sub`, which no account can be told by. */
export function readIdentity(claims: Claims, names: ClaimNames): Identity | null {
  const subject = Subject.safeParse(claims['sub'])
  if (!subject.success) return null
  const found = Email.safeParse(find(claims, names.email))
  const email = found.success ? found.data.toLowerCase() : null
  const groups = readList(find(claims, names.groups))
  return {
    subject: subject.data,
    email,
    isEmailVerified: email !== null && isVerified(claims, names.emailVerified),
    name: readName(find(claims, names.name)),
    groups: groups.slice(0, groupsMax),
    lacksGroups: groups.length > groupsMax || isOverage(claims, names.groups),
    appRoles: readList(find(claims, names.appRoles)).slice(0, groupsMax),
    domain: names.hostedDomain
      ? readDomain(find(claims, names.hostedDomain))
      : (email?.slice(email.lastIndexOf('@') + 1) ?? null),
  }
}

/**
 * What a token and the provider's page about the account say together; the token counts first. An address is verified only where
 * one of them says both: what the page says of its address is not said of another one in the token.
 */
export function readJoinedIdentity(
  token: Claims,
  page: Claims,
  names: ClaimNames,
): Identity | null {
  const joined = readIdentity({ ...page, ...token }, names)
  // The token alone says whose account it is.
  const sides = [token, { ...page, sub: token['sub'] }].map((side) => readIdentity(side, names))
  const isEmailVerified = sides.some(
    (side) => side !== null && side.isEmailVerified && side.email === joined?.email,
  )
  return joined && { ...joined, isEmailVerified }
}

function find(claims: Claims, name: ClaimName): unknown {
  let value: unknown = claims
  for (const step of typeof name === 'string' ? [name] : name) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string, unknown>)[step]
  }
  return value
}

/** Some providers write a list with one item as a text. Never cut at spaces: names of groups have them. */
function readList(value: unknown): string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  return values.filter((each) => typeof each === 'string').filter((each) => each !== '')
}

/** Entra ID writes `xms_edov` as a number or as a text. */
const isVerified = (claims: Claims, name: ClaimName | true) =>
  name === true || [true, 'true', 1, '1'].some((yes) => find(claims, name) === yes)

/** Entra ID says where the groups can be asked for, or only that there are some. */
function isOverage(claims: Claims, name: ClaimName): boolean {
  const elsewhere = claims['_claim_names']
  const last = typeof name === 'string' ? name : name.at(-1)
  const isElsewhere =
    typeof elsewhere === 'object' &&
    elsewhere !== null &&
    last !== undefined &&
    Object.hasOwn(elsewhere, last)
  return isElsewhere || claims['hasgroups'] === true || claims['hasgroups'] === 'true'
}

/** At most 80 characters, as members' names have, and nothing that a page or a log line would show as something else. */
function readName(value: unknown): string | null {
  if (typeof value !== 'string') return null
  const name = value.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, ' ').trim()
  return Array.from(name).slice(0, 80).join('').trim() || null
}

const readDomain = (value: unknown) =>
  typeof value === 'string' && value !== '' ? value.toLowerCase() : null
