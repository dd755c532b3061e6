/** Why letters of a redrive were not sent, in words. */

const WORDS: Readonly<Record<string, string>> = {
  changed: 'changed since the plan was made',
  leased: 'held by a consumer',
  gone: 'not there any more',
  in_other_redrive: 'in another redrive',
  order_blocked: 'behind an earlier letter of its key that stayed',
  repair_refused: 'the repair does not apply',
  send_refused: 'refused where it was to go',
}

/** The reason for people; one that a newer server has stands as it is. */
export const reasonWords = (reason: string): string => WORDS[reason] ?? reason.replaceAll('_', ' ')
