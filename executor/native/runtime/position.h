/* Heads with keys (2 j, -j^2) for the positions j = 0 .. p: the nearest to a quotient wins. */

/* The position nearest to e, of two equally near ones the later. */
static inline int64_t nearest(status *s, double e, int64_t p)
{
    /* No branches: where a query does not matter, where it points is hard to predict. */
    double last = (double)p;
    double clamped = e < last ? e : last;
    clamped = clamped > 0.0 ? clamped : 0.0;
    int64_t below = (int64_t)clamped;
    if (__builtin_expect(!(fabs(e) < INFINITY), 0))
        fail(s, NOT_FINITE);
    return below + (clamped - (double)below >= 0.5); /* the difference is exact */
}

/* Sign of the score of position j + 1 less that of j: 2 qx - (2 j + 1) qy. */
static int step_change(double qx, double qy, int64_t j)
{
    double odd = (double)(2 * j + 1), one = 2.0 * qx, other = odd * qy;
    double slack = (fabs(one) + fabs(other)) * SLACK + TINY;
    if (one - other > slack)
        return 1;
    if (one - other < -slack)
        return -1;
    double products[4] = {2.0, qx, -odd, qy};
    return sign_of_products(products, 2);
}

/* The position of the greatest score for any query, the latest of a tie. */
static int64_t nearest_quotient(status *s, double qx, double qy, int64_t p)
{
    if (qy == 1.0)
        return nearest(s, qx, p);
    if (!(fabs(qx) < LIMIT && fabs(qy) < LIMIT)) {
        fail(s, NOT_FINITE);
        return p;
    }
    if (qy > 0.0) {
        double e = qx / qy; /* may be infinite */
        int64_t j = !(e > 0.0) ? 0 : e >= (double)p ? p : (int64_t)(e + 0.5);
        j = j > p ? p : j;
        while (j > 0 && step_change(qx, qy, j - 1) < 0)
            j--;
        while (j < p && step_change(qx, qy, j) >= 0)
            j++;
        return j;
    }
    if (qy == 0.0)
        return qx < 0.0 ? 0 : p;
    /* q_y < 0: an end. p (2 qx - p qy) is the score of p; that of 0 is 0. */
    double products[4] = {2.0, qx, -(double)p, qy};
    return sign_of_products(products, 2) >= 0 ? p : 0;
}
