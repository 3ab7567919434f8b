import { isAlphanumeric, isAsciiLetter, isDash, isDigit } from './characters.ts'
import { passesMod97 } from './checksums.ts'
import type { Find } from './entity.ts'

/** How long the numbers of bank accounts are. */
const lengths: ReadonlyMap<string, number> = new Map(
  Object.entries({
    AD: 24,
    AE: 23,
    AL: 28,
    AT: 20,
    AZ: 28,
    BA: 20,
    BE: 16,
    BG: 22,
    BH: 22,
    BI: 27,
    BR: 29,
    BY: 28,
    CH: 21,
    CR: 22,
    CY: 28,
    CZ: 24,
    DE: 22,
    DJ: 27,
    DK: 18,
    DO: 28,
    EE: 20,
    EG: 29,
    ES: 24,
    FI: 18,
    FK: 18,
    FO: 18,
    FR: 27,
    GB: 22,
    GE: 22,
    GI: 23,
    GL: 18,
    GR: 27,
    GT: 28,
    HN: 28,
    HR: 21,
    HU: 28,
    IE: 22,
    IL: 23,
    IQ: 23,
    IS: 26,
    IT: 27,
    JO: 30,
    KW: 30,
    KZ: 20,
    LB: 28,
    LC: 32,
    LI: 21,
    LT: 20,
    LU: 20,
    LV: 21,
    LY: 25,
    MC: 27,
    MD: 24,
    ME: 22,
    MK: 19,
    MN: 20,
    MR: 27,
    MT: 31,
    MU: 30,
    NI: 28,
    NL: 18,
    NO: 15,
    OM: 23,
    PK: 24,
    PL: 28,
    PS: 29,
    PT: 25,
    QA: 29,
    RO: 24,
    RS: 22,
    RU: 33,
    SA: 24,
    SC: 31,
    SD: 18,
    SE: 24,
    SI: 19,
    SK: 24,
    SM: 27,
    SO: 23,
    ST: 25,
    SV: 28,
    TL: 23,
    TN: 24,
    TR: 26,
    UA: 29,
    VA: 22,
    VG: 24,
    XK: 20,
    YE: 30,
  }),
)

/** Numbers of bank accounts, written together or in groups. */
export const findIban: Find = ({ text, isWhole }, at) => {
  for (let index = 0; index < 4; index++) {
    if (at + index === text.length) return isWhole ? null : 'open'
    const unit = text.charCodeAt(at + index)
    if (!(index < 2 ? isAsciiLetter(unit) : isDigit(unit))) return null
  }
  const length = lengths.get(text.slice(at, at + 2).toUpperCase())
  if (length === undefined) return null
  let iban = ''
  let end = at
  for (let isSeparated = false; iban.length < length; end++) {
    const unit = text.charCodeAt(end)
    if (end === text.length) return isWhole ? null : 'open'
    if (isAlphanumeric(unit)) iban += text.charAt(end)
    else if (isSeparated || (unit !== 32 && !isDash(unit))) return null
    isSeparated = !isAlphanumeric(unit)
  }
  if (end === text.length && !isWhole) return 'open'
  const isOver = !isAlphanumeric(text.charCodeAt(end))
  return isOver && passesMod97(iban.toUpperCase()) ? { kind: 'IBAN', start: at, end } : null
}
