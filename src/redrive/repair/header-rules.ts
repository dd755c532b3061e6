/** What a recipe does to the headers of an item: which it sets, and which it empties. */
import { type HeaderEdit, ITEM_HEADERS, type ItemHeader } from '../../letters/letter.ts'
import { fieldsOf, given, kindOf, refuse, shown } from './recipe-fields.ts'

/** Headers of queue items that are set or emptied. */
export interface HeaderRules {
  readonly set: HeaderEdit
  readonly remove: readonly ItemHeader[]
}

/** The headers that change, and what they become; removed ones become empty. */
export function changedHeaders(
  rules: HeaderRules,
  headers: Readonly<Record<ItemHeader, string>>,
): HeaderEdit {
  const changed: Partial<Record<ItemHeader, string>> = {}
  for (const name of ITEM_HEADERS) {
    const value = rules.remove.includes(name) ? '' : rules.set[name]
    if (value !== undefined && value !== headers[name]) changed[name] = value
  }
  return changed
}

/** The rules in a request, or a refusal that says what is wrong with them. */
export function parseHeaderRules(value: unknown, parameter: string): HeaderRules {
  const fields = fieldsOf(value, parameter, ['set', 'remove'])
  const set = given(fields, 'set')
  const remove = given(fields, 'remove')
  const rules = {
    set: set === null ? {} : parseSet(set, `${parameter}.set`),
    remove: remove === null ? [] : parseRemove(remove, `${parameter}.remove`),
  }
  const both = rules.remove.find((name) => rules.set[name] !== undefined)
  if (both !== undefined) throw refuse(parameter, `${both} is both in set and in remove`)
  if (Object.keys(rules.set).length + rules.remove.length === 0) {
    throw refuse(parameter, 'it changes nothing, give set or remove')
  }
  return rules
}

/** As long as it fits into a request: items have no other limit. */
function parseSet(value: unknown, parameter: string): HeaderRules['set'] {
  const fields = fieldsOf(value, parameter, ITEM_HEADERS)
  const set: Partial<Record<ItemHeader, string>> = {}
  for (const name of ITEM_HEADERS) {
    if (!Object.hasOwn(fields, name)) continue
    const text = fields[name]
    if (typeof text !== 'string') throw refuse(`${parameter}.${name}`, `it is ${kindOf(text)}, give a text`)
    if (!text.isWellFormed()) {
      throw refuse(`${parameter}.${name}`, 'it holds half a character (a lone surrogate)')
    }
    set[name] = text
  }
  return set
}

function parseRemove(value: unknown, parameter: string): readonly ItemHeader[] {
  if (!Array.isArray(value)) throw refuse(parameter, `it is ${kindOf(value)}, give a list of headers`)
  value.forEach((name, index) => {
    const place = `${parameter}[${index}]`
    if (!ITEM_HEADERS.includes(name))
      throw refuse(place, `${shown(name)}, give one of ${ITEM_HEADERS.join(', ')}`)
    if (value.indexOf(name) < index) throw refuse(place, `'${name}' is named twice`)
  })
  return ITEM_HEADERS.filter((name) => value.includes(name))
}
