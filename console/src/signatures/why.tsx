/** Why these letters are one group. */
import { Text } from '@mantine/core'
import type { SignatureGroup } from '../api/types.ts'
import { Panel } from '../kit/page.tsx'
import { masksIn } from './group.ts'

export function WhyPanel({
  group: { signature, version, errorClass, title },
}: {
  readonly group: SignatureGroup
}) {
  const masks = masksIn(title)
  return (
    <Panel title="Grouped by">
      <Text size="sm">
        {version === 0
          ? 'There are more different errors than can be told apart; those that came last are here together.'
          : 'Same class, same message and same place in the code, once what differs from letter to letter is left out.'}
      </Text>
      <dl className="why">
        <dt>Class</dt>
        <dd className="bytes">{errorClass === '' ? '(none given)' : errorClass}</dd>
        <dt>Common to all</dt>
        <dd className="bytes">{title}</dd>
        {masks.length > 0 && (
          <>
            <dt>Left out</dt>
            <dd>
              {masks.map(({ mask, meaning }) => (
                <span key={mask} className="mask">
                  <code>{mask}</code> {meaning}
                </span>
              ))}
            </dd>
          </>
        )}
        <dt>Fingerprint</dt>
        <dd>
          <span className="bytes">{signature}</span>
          <Text span size="sm" c="var(--quiet)">
            {' '}
            · version {version} of the algorithm
          </Text>
        </dd>
      </dl>
    </Panel>
  )
}
