/** A group of letters in words. Pure. */
import type { SignatureGroup } from '../api/types.ts'
import { sumOf } from '../kit/activity-series.ts'
import { visible } from '../kit/visible.ts'
import { grouped } from '../time/format.ts'

/** Class and normalised message: what people call the group by. */
export function nameOf({ errorClass, title }: Pick<SignatureGroup, 'errorClass' | 'title'>): string {
  const hasClass = errorClass === '' || title === errorClass || title.startsWith(`${errorClass}:`)
  return visible(hasClass ? title : `${errorClass}: ${title}`)
}

/** For the sentence of a plan. */
export const lettersOf = (group: Pick<SignatureGroup, 'errorClass' | 'title'>): string =>
  `letters of "${nameOf(group)}"`

/** A trend, for those who cannot see its line. */
export function trendWords(trend: readonly number[]): string {
  const all = sumOf(trend)
  if (all === 0) return 'None arrived in the last 24 hours'
  return `${grouped(all)} arrived in the last 24 hours, at most ${grouped(Math.max(...trend))} in one hour`
}

export interface Mask {
  readonly mask: string
  readonly meaning: string
}

const MASKS: readonly Mask[] = [
  { mask: '#', meaning: 'a number or an id' },
  { mask: '<text>', meaning: 'quoted text' },
  { mask: '<path>', meaning: 'a path' },
  { mask: '<url>', meaning: 'a web address' },
  { mask: '<email>', meaning: 'an e-mail address' },
  { mask: '<ip>', meaning: 'a network address' },
  { mask: '<time>', meaning: 'a date or a time' },
]

/** What was left out of the title, because it differs from letter to letter. */
export const masksIn = (title: string): readonly Mask[] => MASKS.filter(({ mask }) => title.includes(mask))
