import { describe, expect, it } from 'vitest'
import { kafkaSettingsFor } from '../../../../test/world/kafka/settings.ts'
import { type Claims, serviceOf } from './read-event.ts'

const settings = kafkaSettingsFor({
  services: {
    wps: { dlqTopic: 'wps_dlq' },
    dcs: { dlqTopic: 'dlq' },
    irs: { dlqTopic: 'dlq', aliases: ['irs-eu'] },
  },
  dlqTopics: ['others'],
})
const open = { ...settings, acceptUnlistedServices: true }

const found = (claims: Partial<Claims>, given = settings): readonly [string | null, boolean] => {
  const { service, guessed } = serviceOf(
    { topic: 'dlq', service: null, serviceInEventId: null, consumerGroup: null, ...claims },
    given,
  )
  return [service?.name ?? null, guessed]
}

describe('the service of a record', () => {
  it('is the one that it names, also by an alias', () => {
    expect(found({ service: 'dcs' })).toEqual(['dcs', false])
    expect(found({ service: 'irs-eu' })).toEqual(['irs', false])
    expect(found({ service: 'dcs', serviceInEventId: 'irs' })).toEqual(['dcs', false])
  })

  it('is the one in the event id of old generations', () => {
    expect(found({ serviceInEventId: 'irs' })).toEqual(['irs', false])
  })

  it('is the only owner of the topic, which is a guess', () => {
    expect(found({ topic: 'wps_dlq' })).toEqual(['wps', true])
    expect(found({ topic: 'wps_dlq', consumerGroup: 'dcs' })).toEqual(['wps', true])
    expect(found({})).toEqual([null, false])
    expect(found({ topic: 'others' })).toEqual([null, false])
  })

  it('is the one whose group failed, which is a guess', () => {
    expect(found({ consumerGroup: 'irs-eu' })).toEqual(['irs', true])
    expect(found({ consumerGroup: 'dcs' })).toEqual(['dcs', true])
    expect(found({ consumerGroup: 'wps' })).toEqual([null, false])
    expect(found({ consumerGroup: 'nobody' }, open)).toEqual([null, false])
  })

  it('is never another one than the record names', () => {
    expect(found({ topic: 'wps_dlq', service: 'nobody' })).toEqual([null, false])
    expect(found({ topic: 'wps_dlq', service: '../etc' })).toEqual([null, false])
    expect(found({ topic: 'wps_dlq', serviceInEventId: 'nobody' })).toEqual([null, false])
    expect(found({ service: 'nobody', consumerGroup: 'dcs' })).toEqual([null, false])
  })

  it('is not a listed one when its topic is another', () => {
    expect(found({ service: 'wps' })).toEqual([null, false])
    expect(found({ service: 'wps' }, open)).toEqual([null, false])
    expect(found({ topic: 'others', service: 'irs-eu' }, open)).toEqual([null, false])
  })

  it('can be one that is not listed, where that is accepted and the name is legal', () => {
    expect(found({ service: 'nobody' }, open)).toEqual(['nobody', false])
    expect(found({ topic: 'others', serviceInEventId: 'old' }, open)).toEqual(['old', false])
    for (const service of [
      '../etc',
      '',
      'rpc',
      'summary',
      'a b',
      '4706cc1b-4c32-46d9-91b9-57b2de45dfe0',
      '~unknown',
    ]) {
      expect(found({ service }, open)).toEqual([null, false])
    }
  })

  it('is not one that is not listed and would have the retry topic of one that is', () => {
    const taken = kafkaSettingsFor({
      services: { wps: { dlqTopic: 'dlq', retryTopic: 'retry-other' } },
      acceptUnlistedServices: true,
    })
    expect(found({ service: 'other' }, taken)).toEqual([null, false])
    expect(found({ service: 'another' }, taken)).toEqual(['another', false])
  })
})
