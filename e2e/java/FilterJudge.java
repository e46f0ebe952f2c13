import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.filter.ExpressionType;
import org.apache.rocketmq.filter.FilterFactory;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.util.BloomFilter;
import org.apache.rocketmq.filter.util.BloomFilterData;

/** What Apache's own filter classes make of expressions and names. */
final class FilterJudge {
    private FilterJudge() {
    }

    /**
     * One text for each expression: "" when it does not compile, else a letter for each set of properties: t, f, n for
     * null, x when the evaluation throws.
     */
    static Object judge(JSONObject q) {
        JSONArray sets = q.getJSONArray("sets");
        List<EvaluationContext> contexts = new ArrayList<>();
        for (int i = 0; i < sets.size(); i++) {
            contexts.add(context(sets.getJSONObject(i)));
        }
        List<String> out = new ArrayList<>();
        for (Object text : q.getJSONArray("expressions")) {
            out.add(outcomes((String) text, contexts));
        }
        return out;
    }

    private static String outcomes(String text, List<EvaluationContext> contexts) {
        Expression e;
        try {
            e = FilterFactory.INSTANCE.get(ExpressionType.SQL92).compile(text);
        } catch (Throwable bad) {
            return "";
        }
        StringBuilder b = new StringBuilder();
        for (EvaluationContext c : contexts) {
            b.append(outcome(e, c));
        }
        return b.toString();
    }

    private static char outcome(Expression e, EvaluationContext c) {
        try {
            Object v = e.evaluate(c);
            return v == null ? 'n' : Boolean.TRUE.equals(v) ? 't' : 'f';
        } catch (Throwable failed) {
            return 'x';
        }
    }

    private static EvaluationContext context(JSONObject set) {
        return new EvaluationContext() {
            @Override
            public Object get(String name) {
                return set.getString(name);
            }

            @Override
            public Map<String, Object> keyValues() {
                return set;
            }
        };
    }

    /** The bit positions of names for several sizes of the bloom filter. */
    static Object bloom(JSONObject q) {
        List<Object> out = new ArrayList<>();
        for (Object n : q.getJSONArray("sizes")) {
            BloomFilter filter = BloomFilter.createByFn(q.getIntValue("errorRate"), (Integer) n);
            for (Object name : q.getJSONArray("names")) {
                BloomFilterData data = filter.generate((String) name);
                JSONObject o = new JSONObject();
                o.put("n", n);
                o.put("name", name);
                o.put("bitNum", data.getBitNum());
                o.put("bitPos", data.getBitPos());
                out.add(o);
            }
        }
        return out;
    }
}
